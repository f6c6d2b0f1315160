#pragma once

namespace plimsoll::pretend {

/// Sets the calling thread's current device. REQUIRES: 0 <= device < machine().device_count().
void set_current_device(int device);

}  // namespace plimsoll::pretend
