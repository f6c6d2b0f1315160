#pragma once

#include <c10/core/DeviceType.h>

namespace plimsoll::distributed {

/// Makes LOCAL_RANK, or the rank modulo the number of devices, the current device, unless the process has used one.
/// Does nothing for the CPU, for a "fake" default group, and without a device.
void choose_local_device(c10::DeviceType device_type);

}  // namespace plimsoll::distributed
