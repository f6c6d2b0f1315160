#pragma once

#include <map>
#include <string>
#include <vector>

#include "plimsoll/report/report.h"

namespace plimsoll::report {

/// One line of the table of steps: a step, or several consecutive ones.
struct StepRow {
  std::string label;  ///< "before", "0", "2-9", "after"
  Bytes active_peak = 0;
  Bytes reserved_peak = 0;
  std::map<std::string, Bytes> active_by_phase;
};

/// The rows for the steps of a report. Consecutive steps with the same peaks share a row. If more than `limit` rows are
/// left, those in the middle become one row with their highest values.
/// REQUIRES: limit >= 4.
std::vector<StepRow> step_rows(const std::optional<StepPeaks>& before, const std::vector<StepPeaks>& steps,
                               const std::optional<StepPeaks>& after, std::size_t limit = 20);

/// The phases that occur in `rows`: forward, backward, optimizer, other, then any others by name.
std::vector<std::string> phases_of(const std::vector<StepRow>& rows);

}  // namespace plimsoll::report
