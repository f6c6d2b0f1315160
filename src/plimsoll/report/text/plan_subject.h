#pragma once

#include <string>

#include "plimsoll/report/plan_report.h"

namespace plimsoll::report {

/// What a report is of: the model, the GPUs, the settings that most people change. Ends with a line feed.
std::string subject(const PlanReport& report);

/// "step 1, backward, module layers.31 (pre-backward)".
std::string peak_moment_in_full(const PlanReport& report);

}  // namespace plimsoll::report
