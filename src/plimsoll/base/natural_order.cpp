#include "plimsoll/base/natural_order.h"

#include <algorithm>
#include <cctype>

namespace plimsoll {
namespace {

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

/// A point separates a module from its children, so it comes before all else.
int rank_of(char c) { return c == '.' ? 0 : std::tolower(static_cast<unsigned char>(c)); }

/// Takes the digits at the front of `text`, without leading zeros.
std::string_view take_number(std::string_view& text) {
  const auto end = static_cast<std::size_t>(std::find_if_not(text.begin(), text.end(), is_digit) - text.begin());
  auto digits = text.substr(0, end);
  text.remove_prefix(end);
  while (digits.size() > 1 && digits.front() == '0') digits.remove_prefix(1);
  return digits;
}

}  // namespace

bool natural_less(std::string_view a, std::string_view b) {
  while (!a.empty() && !b.empty()) {
    if (is_digit(a.front()) && is_digit(b.front())) {
      const auto x = take_number(a), y = take_number(b);
      if (x != y) return x.size() != y.size() ? x.size() < y.size() : x < y;
    } else {
      if (rank_of(a.front()) != rank_of(b.front())) return rank_of(a.front()) < rank_of(b.front());
      a.remove_prefix(1);
      b.remove_prefix(1);
    }
  }
  return a.empty() && !b.empty();
}

}  // namespace plimsoll
