#pragma once

#include <vector>

#include "plimsoll/report/plan_report.h"
#include "plimsoll/tracker/explanation.h"
#include "plimsoll/tracker/mem_tracker.h"

namespace plimsoll::plan {

/// An explanation's causes, with the owners by the paths that people know.
std::vector<report::PeakCause> causes_of(const Explanation& explanation);

/// Where nothing is sharded the categories are all there is to tell.
std::vector<report::PeakCause> causes_of(const std::vector<LiveTensor>& alive);

}  // namespace plimsoll::plan
