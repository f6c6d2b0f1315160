#include "plimsoll/pretend/model/visible_devices.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>

#include "plimsoll/pretend/model/uuid.h"

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
