#pragma once

#include "plimsoll/report/json_pieces.h"
#include "plimsoll/report/plan_report.h"

namespace plimsoll::report {

/// The document as a value, to stand in another.
Json plan_json(const PlanReport& report);

Json job_value_json(const JobValue& value);

}  // namespace plimsoll::report
