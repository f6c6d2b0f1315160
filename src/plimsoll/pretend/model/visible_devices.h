#pragma once

#include <string_view>
#include <vector>

namespace plimsoll::pretend {

/// The cards that a value of CUDA_VISIBLE_DEVICES shows, in its order: numbers, or identifiers ("GPU-" and as much of
/// the rest as tells a card apart), separated by commas; which of the two, the first one says. As the driver reads it,
/// the first that names no card ends the list, one that is there twice empties it, and so does an empty text.
std::vector<int> visible_devices(std::string_view text, int cards);

}  // namespace plimsoll::pretend
