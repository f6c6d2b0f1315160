#pragma once

#include <torch/nn/module.h>

#include <array>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "plimsoll/ledger/ledger.h"
#include "plimsoll/tracker/explain/moments.h"
#include "plimsoll/tracker/module_stats.h"

namespace plimsoll {

/// What is kept of each module: the compact form of ModuleStats. A module that runs in a later step begins anew, so it
/// all grows with modules and with the calls of one step. Not thread-safe: the tracker's lock guards it.
class ModuleRecords {
 public:
  /// A forward or backward that is not over.
  struct Open {
    ModuleState state{};
    std::size_t peak = 0;  ///< Which of the module's calls it is, for its peak.
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
    ledger::Step step = ledger::kNoStep;
    Moments moments;
    std::array<std::vector<Moments::Place>, std::size(ledger::kModuleStateNames)> states;  ///< By state, call by call.
    std::optional<Moments::Place> local_peak;
    std::vector<Open> open;
  };

  /// The record of a module; nullptr where it has none. One of a dead module at the same address is forgotten.
  Record* find(const torch::nn::Module& module, ledger::Ledger& ledger);
  Record& add(torch::nn::Module& module, std::string fqn, ledger::OwnerId owner);

  /// The module enters a state: its moment, and for forward and backward the beginning of its peak.
  static void enter(Record& record, ModuleState state, int pass, ledger::Ledger& ledger);
  /// The module is past what it entered with `entered` (nothing is left where it did not): its moment, and its peak.
  static void leave(Record& record, ModuleState state, ModuleState entered, ledger::Ledger& ledger);

  /// Closes all that is open.
  void close_all(ledger::Ledger& ledger);
  /// Closes what a backward pass has left open.
  void close_pass(int pass, ledger::Ledger& ledger);

  std::vector<ModuleStats> stats(const ledger::Ledger& ledger) const;
  /// Of one module; nothing where it has no record.
  std::optional<ModuleStats> stats_of(const torch::nn::Module& module, const ledger::Ledger& ledger) const;
  /// Those that are within no other, by name.
  std::vector<std::pair<std::string, std::weak_ptr<torch::nn::Module>>> roots() const;
  void clear() { records_.clear(); }
  /// How many moments are kept.
  std::size_t entries() const;

 private:
  std::unordered_map<const torch::nn::Module*, Record> records_;
};

}  // namespace plimsoll
