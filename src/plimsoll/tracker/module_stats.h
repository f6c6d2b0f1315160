#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "plimsoll/ledger/ids.h"
#include "plimsoll/tracker/snapshot.h"

namespace plimsoll::inline tracker {

using ledger::ModuleState;

/// The statistics of one module, of the latest step in which it ran.
struct ModuleStats {
  /// The path from its root: "Transformer.layers.0.attention".
  std::string fqn = {};
  /// Bytes of all its parameters and buffers, with its children's.
  std::int64_t parameter_bytes = 0;
  std::int64_t buffer_bytes = 0;
  /// Bytes of the arguments and results of its last call.
  std::int64_t input_bytes = 0;
  std::int64_t output_bytes = 0;
  /// The highest total during its latest forward or backward, by device.
  std::map<std::string, std::int64_t> local_peak = {};
  /// One for each call of that state, in order. The categories of peaks are those at the instant of the peak.
  std::map<ModuleState, std::vector<Snapshot>> snapshots = {};
  /// The states in the order of events; a peak stands before its state.
  std::vector<ModuleState> order = {};
  std::weak_ptr<torch::nn::Module> module = {};
};

}  // namespace plimsoll::inline tracker
