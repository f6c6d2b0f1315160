#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/tracker/snapshot.h"

namespace plimsoll {

/// Where an FSDP module is on its way through a step, in torch's words.
enum class FSDPModState : std::uint8_t {
  kBeforePreForward,
  kAfterPreForward,  ///< The parameters are whole.
  kBeforePostForward,
  kAfterPostForward,  ///< They are freed again, or kept.
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

/// What one FSDP module (or a group of modules that fully_shard took together) did in the latest step in which it ran.
struct FSDPModuleStats {
  /// The path from its root, as MemTracker's; of a group, the paths with commas between.
  std::string fqn = {};
  /// The highest total during its latest forward or backward, by device.
  std::map<std::string, std::int64_t> local_peak = {};
  /// One for each time it was in that state, in order. A module with several groups of parameters has one for each of
  /// them in the states of backward, which are the groups'.
  std::map<FSDPModState, std::vector<Snapshot>> snapshots = {};
  /// The states that it was in, in the order of events; a peak before what it is the peak of.
  std::vector<FSDPModState> order = {};
  std::vector<std::weak_ptr<torch::nn::Module>> modules = {};
};

}  // namespace plimsoll
