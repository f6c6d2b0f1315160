#pragma once

#include <map>
#include <string>
#include <vector>

#include "plimsoll/plan/trainer.h"
#include "plimsoll/report/plan_report.h"
#include "plimsoll/tracker/mem_tracker.h"

namespace plimsoll::plan {

/// The modules down to `depth` parts of their path, with what each and all below it had at the peak; after them what
/// belongs to no module: optimizers, and what was made outside of modules.
std::vector<report::ModuleRow> module_rows(Trainer& trainer, MemTracker& tracker, const std::vector<LiveTensor>& alive,
                                           int depth);

}  // namespace plimsoll::plan
