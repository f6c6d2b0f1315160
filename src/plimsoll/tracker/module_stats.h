#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "plimsoll/ledger/ids.h"
#include "plimsoll/tracker/snapshot.h"

namespace plimsoll {

using ledger::ModuleState;

/// What one module did in the latest step in which it ran.
struct ModuleStats {
  /// The path from its root: "Transformer.layers.0.attention".
  std::string fqn = {};
  /// Bytes of all its parameters and buffers, those of its children included.
  std::int64_t parameter_bytes = 0;
  std::int64_t buffer_bytes = 0;
  /// Of the tensors that its last call took and gave.
  std::int64_t input_bytes = 0;
  std::int64_t output_bytes = 0;
  /// The highest total during its latest forward or backward, by device.
  std::map<std::string, std::int64_t> local_peak = {};
  /// One for each time it was in that state, in order. The peaks' categories are those at the instant of the peak.
  std::map<ModuleState, std::vector<Snapshot>> snapshots = {};
  /// The states that it was in, in the order of events; a peak before what it is the peak of.
  std::vector<ModuleState> order = {};
  std::weak_ptr<torch::nn::Module> module = {};
};

}  // namespace plimsoll
