#pragma once

#include <map>
#include <string>
#include <vector>

#include "plimsoll/report/run_report.h"

namespace plimsoll::report {

/// One line of the table of steps: a step, or several consecutive ones.
struct StepRow {
  std::string label;  ///< "before", "0", "2-9", "after"
  Bytes active_peak = 0;
  Bytes reserved_peak = 0;
  std::map<std::string, Bytes> active_by_phase;
};

/// The rows for a report's steps. Consecutive steps with the same peaks share one; where that leaves more than
/// `limit` rows of steps, those in the middle become one with the highest of their numbers.
/// REQUIRES: limit >= 4.
std::vector<StepRow> step_rows(const std::optional<StepPeaks>& before, const std::vector<StepPeaks>& steps,
                               const std::optional<StepPeaks>& after, std::size_t limit = 20);
inline std::vector<StepRow> step_rows(const RunReport& report, std::size_t limit = 20) {
  return step_rows(report.before_steps, report.steps, report.after_steps, limit);
}

/// The phases that occur in `rows`: forward, backward, optimizer, other, then any others by name.
std::vector<std::string> phases_of(const std::vector<StepRow>& rows);

}  // namespace plimsoll::report
