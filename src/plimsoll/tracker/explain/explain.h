#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plimsoll/ledger/ledger.h"
#include "plimsoll/tracker/books.h"
#include "plimsoll/tracker/explain/explanation.h"
#include "plimsoll/tracker/explain/stage_log.h"

namespace plimsoll {

/// The paths of the modules under fully_shard, each with the owner that FSDP's memory for it has.
using FSDPMembers = std::vector<std::pair<std::string, ledger::OwnerId>>;

/// What an allocation was named as, at the instant or since.
using NamedAs = std::function<std::optional<AllocationClassifier::Class>(ledger::AllocationId)>;

/// Takes what was alive at the peak apart by why it was. `stages` is where the FSDP modules were then.
Explanation explain(const ledger::Ledger& ledger, const ledger::Peak& peak, const Stages& stages,
                    const FSDPMembers& members, const NamedAs& named_as);

}  // namespace plimsoll
