#include "plimsoll/pretend/model/visible_devices.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <optional>

namespace plimsoll::pretend {
namespace {

constexpr std::string_view kIdentifier = "GPU-";

/// The number at the start of the text: "1gpu" is 1.
std::optional<int> card_of_number(std::string_view text, int cards) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  if (text.starts_with('+')) text.remove_prefix(1);
  int number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0 || number >= cards) return std::nullopt;
  return number;
}

std::optional<int> card_of_identifier(std::string_view text, int cards) {
  if (!text.starts_with(kIdentifier)) return std::nullopt;
  std::optional<int> found;
  for (int card = 0; card < cards; ++card) {
    if (!uuid_text(card).starts_with(text)) continue;
    if (found) return std::nullopt;  // Ambiguous.
    found = card;
  }
  return found;
}

}  // namespace

void fill_uuid(char* bytes, int card) {
  std::memcpy(bytes, "plimsoll-gpu-", 13);
  bytes[13] = 0;
  bytes[14] = static_cast<char>(card >> 8);
  bytes[15] = static_cast<char>(card);
}

std::string uuid_text(int card) {
  char bytes[16];
  fill_uuid(bytes, card);
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    char hex[3];
    std::snprintf(hex, sizeof(hex), "%02x", static_cast<unsigned char>(bytes[i]));
    text += hex;
  }
  return text;
}

std::vector<int> visible_devices(std::string_view text, int cards) {
  const auto card_of = text.starts_with(kIdentifier) ? card_of_identifier : card_of_number;
  std::vector<int> shown;
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t end = std::min(text.find(',', start), text.size());
    const std::optional<int> card = card_of(text.substr(start, end - start), cards);
    if (!card) break;
    if (std::find(shown.begin(), shown.end(), *card) != shown.end()) return {};
    shown.push_back(*card);
    start = end + 1;
  }
  return shown;
}

}  // namespace plimsoll::pretend
