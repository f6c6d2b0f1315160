#pragma once

#include <vector>

#include "plimsoll/report/plan_report.h"
#include "plimsoll/tracker/explain/explanation.h"
#include "plimsoll/tracker/mem_tracker.h"

namespace plimsoll::plan {

/// An explanation's causes, with the owners by the paths that people know.
std::vector<report::PeakCause> causes_of(const Explanation& explanation);

/// MemTracker and FSDPMemTracker spell it differently, as torch's do; a document has one name for one thing.
std::string category_name(const std::string& category);

}  // namespace plimsoll::plan
