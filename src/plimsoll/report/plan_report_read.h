#pragma once

#include "plimsoll/report/json_reader.h"
#include "plimsoll/report/plan_report.h"

namespace plimsoll::report {

/// As `plan_report_from_json`, of a document that is parsed already.
PlanReport read_plan_report(const Fields& document);

}  // namespace plimsoll::report
