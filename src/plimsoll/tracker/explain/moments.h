#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "plimsoll/base/bytes.h"
#include "plimsoll/ledger/ledger.h"
#include "plimsoll/tracker/snapshot.h"

namespace plimsoll::inline tracker {

template <class Use>
void for_each_device(const ledger::Ledger& ledger, Use&& use) {
  for (std::size_t index = 0; index < ledger.devices(); ++index)
    use(ledger::DeviceId{static_cast<std::uint16_t>(index)});
}

/// The bytes by category at one instant, or of each device at its own. Leaves out devices that hold nothing.
Snapshot snapshot_of(const ledger::Ledger& ledger);
Snapshot snapshot_of(const std::vector<ledger::Peak>& peaks, const ledger::Ledger& ledger);

/// Hundreds of such snapshots per step, packed one after the other in memory that clear() keeps for the next step.
class Moments {
 public:
  using Place = std::size_t;

  /// Now.
  Place add(const ledger::Ledger& ledger);
  Place add(const std::vector<ledger::Peak>& peaks, const ledger::Ledger& ledger);
  Snapshot at(Place place, const ledger::Ledger& ledger) const;
  void clear() { packed_.clear(); }

 private:
  void add_device(ledger::DeviceId device, const ledger::Balance& balance, std::size_t categories);

  /// For each moment the number of devices; for each of these its id, the number of categories, and their bytes.
  std::vector<Bytes> packed_;
};

/// The moments of a module in the latest step in which it ran, by state and call.
template <class State, std::size_t kStates>
struct MomentsByState {
  /// Pairs of the state that begins a pass and the peak of that pass. A peak may have no moment here.
  using Peaks = std::array<std::pair<State, State>, 2>;

  ledger::Step step = ledger::kNoStep;
  Moments moments;
  std::array<std::vector<Moments::Place>, kStates> places;

  std::vector<Moments::Place>& operator[](State state) { return places[static_cast<std::size_t>(state)]; }

  void clear() {
    moments.clear();
    for (auto& calls : places) calls.clear();
  }

  /// The number of moments.
  std::size_t entries() const {
    std::size_t count = 0;
    for (const auto& calls : places) count += calls.size();
    return count;
  }

  std::map<State, std::vector<Snapshot>> snapshots(const ledger::Ledger& ledger) const {
    std::map<State, std::vector<Snapshot>> by_state;
    for (std::size_t state = 0; state < kStates; ++state) {
      for (const auto place : places[state]) {
        by_state[State{static_cast<std::uint8_t>(state)}].push_back(moments.at(place, ledger));
      }
    }
    return by_state;
  }

  /// The states of these snapshots, in the order of their first events. A peak stands before the state that begins its
  /// pass, or last if the module had no such state.
  std::vector<State> order(const std::map<State, std::vector<Snapshot>>& snapshots, const Peaks& peaks) const {
    std::vector<std::pair<Moments::Place, State>> first;
    for (const auto& [state, calls] : snapshots) {
      const bool is_peak = state == peaks[0].second || state == peaks[1].second;
      if (!is_peak) first.emplace_back(places[static_cast<std::size_t>(state)].front(), state);
    }
    std::ranges::sort(first);
    std::vector<State> order;
    for (const auto& [place, state] : first) order.push_back(state);
    for (const auto& [beginning, peak] : peaks) {
      if (snapshots.contains(peak)) order.insert(std::ranges::find(order, beginning), peak);
    }
    return order;
  }
};

}  // namespace plimsoll::inline tracker
