#include "plimsoll/cli/planning.h"

#include "plimsoll/base/errors.h"

namespace plimsoll::cli {

report::Report report_or_throw(PlanOutcome outcome) {
  if (outcome.report) return std::move(*outcome.report);
  if (outcome.usage) throw InvalidArgument(outcome.error);
  throw PlanningFailed(outcome.error);
}

}  // namespace plimsoll::cli
