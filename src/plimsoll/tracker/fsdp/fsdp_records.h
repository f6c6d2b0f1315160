#pragma once

#include <iterator>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "plimsoll/ledger/ledger.h"
#include "plimsoll/tracker/explain/moments.h"
#include "plimsoll/tracker/fsdp/fsdp_runtime.h"
#include "plimsoll/tracker/module_records.h"

namespace plimsoll::inline tracker {

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
