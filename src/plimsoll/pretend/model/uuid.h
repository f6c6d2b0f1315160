#pragma once

#include <string>

namespace plimsoll::pretend {

/// Sixteen bytes that identify a card.
void fill_uuid(char* bytes, int card);

/// The same as text: "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx".
std::string uuid_text(int card);

}  // namespace plimsoll::pretend
