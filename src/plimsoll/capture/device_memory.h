#pragma once

#include <c10/core/Device.h>

#include <optional>

#include "plimsoll/base/bytes.h"

namespace plimsoll::capture {

/// What of a device is taken, by whatever process and library, as its driver counts; nothing for a device that has no
/// driver to ask.
std::optional<Bytes> taken_of_device(c10::Device device);

}  // namespace plimsoll::capture
