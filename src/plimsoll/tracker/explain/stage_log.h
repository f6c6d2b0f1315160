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

namespace plimsoll {

/// Where an FSDP module is.
struct Standing {
  fsdp::Stage stage{};  ///< The last that was heard of it.
  /// A checkpoint has begun to run its forward again, before its backward.
  bool recomputed = false;
};

/// Where each FSDP module was at one instant.
struct Stages {
  /// Those that never did anything are left out.
  std::unordered_map<ledger::OwnerId, Standing> of_owner;
  /// Those whose forward has begun in the forward pass that was the latest.
  std::unordered_set<ledger::OwnerId> in_latest_forward;
  /// The one whose forward or backward began last and was not over; nothing where none ran.
  std::optional<ledger::OwnerId> running;

  std::optional<Standing> operator[](ledger::OwnerId owner) const;
};

bool is_forward(fsdp::Stage stage);
bool is_backward(fsdp::Stage stage);
/// Whether the stage is within a forward or a backward, and not the end of one.
bool is_running(fsdp::Stage stage);

/// Which FSDP module was in which stage when: what an instant of the past is explained by. Not thread-safe.
class StageLog {
 public:
  /// The stage begins right after the event `now`. Of a recomputation only its beginning is told.
  void add(ledger::Step step, ledger::Sequence now, ledger::OwnerId owner, fsdp::Stage stage, bool recomputed = false);
  /// As it was when the event `at` happened. REQUIRES: that step is kept.
  Stages at(ledger::Step step, ledger::Sequence at) const;
  /// Forgets all steps but these and the latest.
  void keep(const std::set<ledger::Step>& steps);
  /// Forgets how the modules came to stand where they do, in the latest step. REQUIRES: no instant of it is asked for.
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

}  // namespace plimsoll
