#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/ledger/ids.h"
#include "plimsoll/tracker/snapshot.h"

namespace plimsoll::inline tracker {

using ledger::ModuleState;

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

/// The statistics by state of a module, of the latest step in which it ran.
template <class State>
struct StatsByState {
  /// The path from its root: "Transformer.layers.0.attention".
  std::string fqn = {};
  /// The highest total during its latest forward or backward, by device.
  std::map<std::string, std::int64_t> local_peak = {};
  /// One for each call of that state, in order. The categories of peaks are those at the instant of the peak.
  std::map<State, std::vector<Snapshot>> snapshots = {};
  /// The states in the order of events; a peak stands before its state.
  std::vector<State> order = {};
};

struct ModuleStats : StatsByState<ModuleState> {
  /// Bytes of all its parameters and buffers, with its children's.
  std::int64_t parameter_bytes = 0;
  std::int64_t buffer_bytes = 0;
  /// Bytes of the arguments and results of its last call.
  std::int64_t input_bytes = 0;
  std::int64_t output_bytes = 0;
  std::weak_ptr<torch::nn::Module> module = {};
};

/// Of one FSDP module, or of a group that fully_shard took together: its path has commas between the modules' paths.
/// A module with several groups of parameters has one snapshot for each group in the states of backward, because those
/// are the groups' states.
struct FSDPModuleStats : StatsByState<FSDPModState> {
  std::vector<std::weak_ptr<torch::nn::Module>> modules = {};
};

}  // namespace plimsoll::inline tracker
