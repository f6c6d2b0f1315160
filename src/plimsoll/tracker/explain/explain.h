#pragma once

#include <functional>
#include <optional>
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

/// The latest category and owner of an allocation, which it may have got after the peak.
using NamedAs = std::function<std::optional<AllocationClassifier::Class>(ledger::AllocationId)>;

/// Groups the live bytes of the peak by category and reason. `stages` has the stage of each FSDP module at the peak.
Explanation explain(const ledger::Ledger& ledger, const ledger::Peak& peak, const Stages& stages,
                    const FSDPMembers& members, const NamedAs& named_as, const OwnerNames& names);

}  // namespace plimsoll::inline tracker
