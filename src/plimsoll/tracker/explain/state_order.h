#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "plimsoll/tracker/explain/moments.h"

namespace plimsoll::inline tracker {

/// A module's states in the order of their first events. A peak has no moment of its own: it stands before the state
/// that begins its pass, or last if the module had no such state.
///
/// `places` are the moments of each state within one step; `peaks` are pairs of such a beginning and its peak, and only
/// those of peaks that there are.
template <class State, std::size_t kStates>
std::vector<State> in_order_of_coming(const std::array<std::vector<Moments::Place>, kStates>& places,
                                      const std::vector<std::pair<State, State>>& peaks) {
  std::vector<std::pair<Moments::Place, State>> first;
  for (std::size_t index = 0; index < kStates; ++index) {
    const State state{static_cast<std::uint8_t>(index)};
    const bool is_peak = std::ranges::any_of(peaks, [&](const auto& pair) { return pair.second == state; });
    if (!is_peak && !places[index].empty()) first.emplace_back(places[index].front(), state);
  }
  std::ranges::sort(first, {}, [](const auto& entry) { return entry.first; });
  std::vector<State> order;
  for (const auto& [place, state] : first) order.push_back(state);
  for (const auto& [beginning, peak] : peaks) order.insert(std::ranges::find(order, beginning), peak);
  return order;
}

}  // namespace plimsoll::inline tracker
