#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace plimsoll::pretend {

/// Sixteen bytes that identify a card.
void fill_uuid(char* bytes, int card);

/// The same as text: "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx".
std::string uuid_text(int card);

/// The cards that a value of CUDA_VISIBLE_DEVICES shows, in its order. The entries are numbers, or identifiers ("GPU-"
/// and a unique part of the rest), separated by commas; the first entry decides which. As in the driver, the first
/// entry that matches no card ends the list. A card that occurs twice, or an empty text, makes the list empty.
std::vector<int> visible_devices(std::string_view text, int cards);

}  // namespace plimsoll::pretend
