#pragma once

#include <c10/core/Device.h>

#include <optional>

#include "plimsoll/base/bytes.h"

namespace plimsoll::capture {

/// The used bytes of a device, by all processes and libraries, as its driver reports them; nothing if the device has no
/// driver.
std::optional<Bytes> taken_of_device(c10::Device device);

}  // namespace plimsoll::capture
