#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plimsoll/report/plan_report.h"

namespace plimsoll::report {

/// One change to a job, and what came of it.
struct Saving {
  std::string change;                ///< As one writes it: "--checkpoint full".
  std::optional<PlanReport> result;  ///< Of the job with it, which was run again.
  std::string failure;               ///< Why there is no result.
};

/// The peak cause by cause, and which single change saves how much on the device book, the largest saving first.
/// Changes that save nothing, or cost, are named in a line below.
std::string explanation_text(const PlanReport& report, const std::vector<Saving>& savings,
                             const PlanTextOptions& options = {});

}  // namespace plimsoll::report
