#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/tracker/snapshot.h"

namespace plimsoll::inline tracker {

/// The state of an FSDP module in a step, in torch's words.
enum class FSDPModState : std::uint8_t {
  kBeforePreForward,
  kAfterPreForward,  ///< The parameters are whole.
  kBeforePostForward,
  kAfterPostForward,  ///< The whole parameters are freed again, or kept.
  kBeforePreBackward,
  kAfterPreBackward,  ///< Whole, and the next module's are on their way.
  kBeforePostBackward,
  kAfterPostBackward,  ///< Freed, and the gradients' reduction is under way.
  kPreForwardAC,       ///< A checkpoint runs the module's forward again.
  kPostForwardAC,
  kPeakForward,
  kPeakBackward,
};
inline constexpr std::string_view kFSDPModStateNames[] = {
    "Before Pre-Forward",  "After Pre-Forward",  "Before Post-Forward",  "After Post-Forward",
    "Before Pre-Backward", "After Pre-Backward", "Before Post-Backward", "After Post-Backward",
    "Pre-Forward AC",      "Post-Forward AC",    "Peak Forward",         "Peak Backward"};
constexpr std::string_view name(FSDPModState state) { return kFSDPModStateNames[static_cast<std::size_t>(state)]; }

/// The statistics of one FSDP module, or of a group that fully_shard took together, of the latest step in which it ran.
struct FSDPModuleStats {
  /// The path from its root, as MemTracker's; of a group, the paths with commas between.
  std::string fqn = {};
  /// The highest total during its latest forward or backward, by device.
  std::map<std::string, std::int64_t> local_peak = {};
  /// One for each call of that state, in order. A module with several groups of parameters has one for each group in
  /// the states of backward, because those are the groups' states.
  std::map<FSDPModState, std::vector<Snapshot>> snapshots = {};
  /// The states in the order of events; a peak stands before its state.
  std::vector<FSDPModState> order = {};
  std::vector<std::weak_ptr<torch::nn::Module>> modules = {};
};

}  // namespace plimsoll::inline tracker
