#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "plimsoll/fsdp/runtime_observer.h"
#include "plimsoll/ledger/ids.h"

namespace plimsoll::inline tracker {

/// The stage of an FSDP module.
struct Standing {
  fsdp::Stage stage{};  ///< The latest.
  /// A checkpoint has begun to run its forward again, before its backward.
  bool recomputed = false;
};

/// The stages of the FSDP modules at one instant.
struct Stages {
  /// Modules without any stage are left out.
  std::unordered_map<ledger::OwnerId, Standing> of_owner;
  /// The modules that have begun their forward in the latest forward pass.
  std::unordered_set<ledger::OwnerId> in_latest_forward;
  /// The module that was the last to begin a forward or backward that was not over; nullopt if none ran.
  std::optional<ledger::OwnerId> running;

  std::optional<Standing> operator[](ledger::OwnerId owner) const;
};

bool is_forward(fsdp::Stage stage);
bool is_backward(fsdp::Stage stage);
/// Whether the stage is within a forward or a backward, and not the end of one.
bool is_running(fsdp::Stage stage);

/// The stages of FSDP modules by event, for explanations of a past instant. Not thread-safe.
class StageLog {
 public:
  /// The stage begins right after the event `now`. Of a recomputation only the beginning is added.
  void add(ledger::Step step, ledger::Sequence now, ledger::OwnerId owner, fsdp::Stage stage, bool recomputed = false);
  /// The stages at the event `at`. REQUIRES: that step is kept.
  Stages at(ledger::Step step, ledger::Sequence at) const;
  /// Forgets all steps but these and the latest.
  void keep(const std::set<ledger::Step>& steps);
  /// Forgets the events of the latest step; the stages at its end stay. REQUIRES: no instant of that step is needed.
  void forget_latest();
  std::size_t entries() const;

 private:
  struct Entry {
    ledger::Sequence after{};
    ledger::OwnerId owner{};
    fsdp::Stage stage{};
    bool recomputed = false;
  };
  struct OfStep {
    std::unordered_map<ledger::OwnerId, Standing> before;
    std::vector<Entry> entries;

    std::unordered_map<ledger::OwnerId, Standing> at_end() const;
  };

  std::map<ledger::Step, OfStep> steps_;
};

}  // namespace plimsoll::inline tracker
