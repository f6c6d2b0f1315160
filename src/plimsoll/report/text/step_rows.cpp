#include "plimsoll/report/text/step_rows.h"

#include <algorithm>
#include <array>
#include <set>

namespace plimsoll::report {
namespace {

StepRow row_of(const StepPeaks& step, const std::string& label) {
  StepRow row{label, step.active_peak, step.reserved_peak, {}};
  for (const auto& [phase, peaks] : step.phases) row.active_by_phase[phase] = peaks.active_peak;
  return row;
}

std::string label_of(std::int64_t first, std::int64_t last) {
  return first == last ? std::to_string(first) : std::to_string(first) + "-" + std::to_string(last);
}

void raise_to(StepRow& row, const StepRow& other) {
  row.active_peak = std::max(row.active_peak, other.active_peak);
  row.reserved_peak = std::max(row.reserved_peak, other.reserved_peak);
  for (const auto& [phase, bytes] : other.active_by_phase) {
    row.active_by_phase[phase] = std::max(row.active_by_phase[phase], bytes);
  }
}

bool happened(const std::optional<StepPeaks>& step) { return step && !step->phases.empty(); }

void add_steps(const std::vector<StepPeaks>& steps, std::size_t limit, std::vector<StepRow>& rows) {
  struct Run {
    const StepPeaks* peaks;
    std::int64_t first;
    std::int64_t last;
  };
  std::vector<Run> runs;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const StepPeaks& step = steps[i];
    const std::int64_t number = step.step.value_or(static_cast<std::int64_t>(i));
    if (!runs.empty() && runs.back().peaks->same_peaks(step)) {
      runs.back().last = number;
    } else {
      runs.push_back({&step, number, number});
    }
  }
  if (runs.size() <= limit) {
    for (const Run& run : runs) rows.push_back(row_of(*run.peaks, label_of(run.first, run.last)));
    return;
  }
  const std::size_t tail = limit / 4;
  const std::size_t head = limit - tail - 1;
  for (std::size_t i = 0; i < head; ++i) rows.push_back(row_of(*runs[i].peaks, label_of(runs[i].first, runs[i].last)));
  StepRow middle{label_of(runs[head].first, runs[runs.size() - tail - 1].last) + " (highest)", 0, 0, {}};
  for (std::size_t i = head; i < runs.size() - tail; ++i) raise_to(middle, row_of(*runs[i].peaks, ""));
  rows.push_back(middle);
  for (std::size_t i = runs.size() - tail; i < runs.size(); ++i) {
    rows.push_back(row_of(*runs[i].peaks, label_of(runs[i].first, runs[i].last)));
  }
}

}  // namespace

std::vector<StepRow> step_rows(const std::optional<StepPeaks>& before, const std::vector<StepPeaks>& steps,
                               const std::optional<StepPeaks>& after, std::size_t limit) {
  std::vector<StepRow> rows;
  if (happened(before)) rows.push_back(row_of(*before, "before"));
  add_steps(steps, limit, rows);
  if (happened(after)) rows.push_back(row_of(*after, "after"));
  return rows;
}

std::vector<std::string> phases_of(const std::vector<StepRow>& rows) {
  std::set<std::string> present;
  for (const StepRow& row : rows) {
    for (const auto& [phase, bytes] : row.active_by_phase) present.insert(phase);
  }
  std::vector<std::string> phases;
  for (const char* known : std::array{"forward", "backward", "optimizer", "other"}) {
    if (present.erase(known) > 0) phases.emplace_back(known);
  }
  phases.insert(phases.end(), present.begin(), present.end());
  return phases;
}

}  // namespace plimsoll::report
