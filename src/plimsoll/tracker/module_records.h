#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "plimsoll/ledger/ledger.h"
#include "plimsoll/tracker/explain/moments.h"
#include "plimsoll/tracker/fsdp/fsdp_runtime.h"
#include "plimsoll/tracker/module_stats.h"

namespace plimsoll::inline tracker {

/// The compact form of ModuleStats, for each module. A module that runs in a later step starts again, so the size
/// depends only on modules and on the calls of one step. Not thread-safe: the tracker's lock guards it.
class ModuleRecords {
 public:
  /// A forward or backward that is not over.
  struct Open {
    ModuleState state{};
    std::size_t peak = 0;  ///< The number of the call among the module's calls, for its peak.
    int pass = kNoPass;    ///< The backward pass that it is part of.
  };
  static constexpr int kNoPass = -1;

  struct Record {
    std::weak_ptr<torch::nn::Module> module;
    std::string fqn;
    ledger::OwnerId owner{};
    std::int64_t parameter_bytes = 0;
    std::int64_t buffer_bytes = 0;
    std::int64_t input_bytes = 0;
    std::int64_t output_bytes = 0;
    MomentsByState<ModuleState, std::size(ledger::kModuleStateNames)> calls;
    std::optional<Moments::Place> local_peak;
    std::vector<Open> open;
  };

  /// The record of a module; nullptr if it has none. Forgets the record of a dead module at the same address.
  Record* find(const torch::nn::Module& module, ledger::Ledger& ledger);
  Record& add(torch::nn::Module& module, std::string fqn, ledger::OwnerId owner);

  /// The module enters a state. Adds a moment and, for forward and backward, starts a peak.
  static void enter(Record& record, ModuleState state, int pass, ledger::Ledger& ledger);
  /// The module leaves the state `entered`. Adds a moment and the peak; nothing if the module did not enter.
  static void leave(Record& record, ModuleState state, ModuleState entered, ledger::Ledger& ledger);

  /// Closes all that is open.
  void close_all(ledger::Ledger& ledger);
  /// Closes the states that a backward pass has left open.
  void close_pass(int pass, ledger::Ledger& ledger);

  std::vector<ModuleStats> stats(const ledger::Ledger& ledger) const;
  /// The statistics of one module; nullopt without a record.
  std::optional<ModuleStats> stats_of(const torch::nn::Module& module, const ledger::Ledger& ledger) const;
  /// The root modules, by name.
  std::vector<std::pair<std::string, std::weak_ptr<torch::nn::Module>>> roots() const;
  void clear() { records_.clear(); }
  /// The number of moments.
  std::size_t entries() const;

 private:
  std::unordered_map<const torch::nn::Module*, Record> records_;
};

/// The compact form of FSDPModuleStats, for each FSDP module. A module that runs in a later step starts again.
/// Not thread-safe: the tracker's lock guards it.
class FSDPRecords {
 public:
  /// A module that is followed, by the name it has.
  void follow(const FSDPRuntime::State& state, const std::string& fqn);
  void forget_dead();
  /// Takes the module's snapshot of this state, which must not be a peak. Does nothing for a module that is not
  /// followed.
  void add(FSDPRuntime::Key state, FSDPModState in, const ledger::Ledger& ledger);

  /// The modules that ran. Their peaks are the peaks of forward and backward; of a group of modules, the maximum, call
  /// by call.
  std::vector<FSDPModuleStats> stats(const ModuleRecords& modules, const ledger::Ledger& ledger) const;
  void clear();
  /// The number of moments.
  std::size_t entries() const;

 private:
  struct Record {
    FSDPRuntime::Life life;
    std::vector<const torch::nn::Module*> modules;
    std::string fqn;
    MomentsByState<FSDPModState, std::size(kFSDPModStateNames)> calls;
  };

  std::unordered_map<FSDPRuntime::Key, Record> records_;
};

}  // namespace plimsoll::inline tracker
