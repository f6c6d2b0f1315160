#pragma once

#include <string>
#include <utility>
#include <vector>

#include "plimsoll/ledger/ledger.h"
#include "plimsoll/tracker/explain/explanation.h"
#include "plimsoll/tracker/explain/stage_log.h"
#include "plimsoll/tracker/tracked_ledger.h"

namespace plimsoll::inline tracker {

/// The paths of the modules under fully_shard, each with the owner of its FSDP memory.
using FSDPMembers = std::vector<std::pair<std::string, ledger::OwnerId>>;

/// Groups the live bytes of the peak by category and reason. `stages` has the stage of each FSDP module at the peak.
/// REQUIRES: within tracked.with_ledger, which gives `ledger`.
Explanation explain(const ledger::Ledger& ledger, const ledger::Peak& peak, const Stages& stages,
                    const FSDPMembers& members, const TrackedLedger& tracked, const OwnerNames& names);

}  // namespace plimsoll::inline tracker
