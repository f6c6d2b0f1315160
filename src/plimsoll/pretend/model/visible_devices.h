#pragma once

#include <string_view>
#include <vector>

namespace plimsoll::pretend {

/// The cards that a value of CUDA_VISIBLE_DEVICES shows, in its order. The entries are numbers, or identifiers ("GPU-"
/// and a unique part of the rest), separated by commas; the first entry decides which. As in the driver, the first
/// entry that matches no card ends the list. A card that occurs twice, or an empty text, makes the list empty.
std::vector<int> visible_devices(std::string_view text, int cards);

}  // namespace plimsoll::pretend
