#include "plimsoll/capture/device_memory.h"

namespace plimsoll::capture {

std::optional<Bytes> taken_of_device(c10::Device) { return std::nullopt; }

}  // namespace plimsoll::capture
