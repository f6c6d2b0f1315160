#include "plimsoll/distributed/ranks.h"

namespace plimsoll::distributed {

std::string describe_ranks(const std::vector<int>& ranks) {
  constexpr std::size_t kShown = 16;
  if (ranks.empty()) {
    return "no ranks";
  }
  if (ranks.size() == 1) {
    return "rank " + std::to_string(ranks[0]);
  }
  bool in_a_row = ranks.size() > 2;
  for (std::size_t i = 1; i < ranks.size(); ++i) {
    in_a_row = in_a_row && ranks[i] == ranks[i - 1] + 1;
  }
  if (in_a_row) {
    return "ranks " + std::to_string(ranks.front()) + " to " + std::to_string(ranks.back());
  }
  std::string text = "ranks ";
  for (std::size_t i = 0; i < ranks.size() && i < kShown; ++i) {
    text += (i ? ", " : "") + std::to_string(ranks[i]);
  }
  return ranks.size() > kShown ? text + ", … (" + std::to_string(ranks.size()) + " in all)" : text;
}

}  // namespace plimsoll::distributed
