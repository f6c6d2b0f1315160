#pragma once

#include <cuda.h>

#include "plimsoll/pretend/model/library_call.h"
#include "plimsoll/pretend/model/machine.h"

namespace plimsoll::pretend::driver {

/// The handle of a device's primary context: the device itself.
inline CUcontext context_of(int device) { return reinterpret_cast<CUcontext>(&machine().device(device)); }

inline Device* device_of(CUcontext context) { return reinterpret_cast<Device*>(context); }

/// The device that owns the address `pointer`; null for host memory.
inline Device* device_of(CUdeviceptr pointer) {
  const auto index = machine().device_of(reinterpret_cast<const void*>(pointer));
  return index ? &machine().device(*index) : nullptr;
}

}  // namespace plimsoll::pretend::driver
