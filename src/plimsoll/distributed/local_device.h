#pragma once

#include <c10/core/DeviceType.h>

namespace plimsoll::distributed {

/// Makes LOCAL_RANK, or else the rank modulo the number of devices, the current device, where the process has used none
/// yet. Does nothing for the CPU, for a "fake" default group, and where there is no device.
void choose_local_device(c10::DeviceType device_type);

}  // namespace plimsoll::distributed
