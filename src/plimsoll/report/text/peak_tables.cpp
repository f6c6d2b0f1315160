#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "plimsoll/base/categories.h"
#include "plimsoll/report/text/sections.h"
#include "plimsoll/report/text/table.h"

namespace plimsoll::report {
namespace {

StepRow row_of(const StepPeaks& step, const std::string& label) {
  StepRow row{label, step.active_peak, step.reserved_peak, {}};
  for (const auto& [phase, peaks] : step.phases) row.active_by_phase[phase] = peaks.active_peak;
  return row;
}

std::string label_of(std::int64_t first, std::int64_t last) {
  return first == last ? std::to_string(first) : fmt::format("{}-{}", first, last);
}

void raise_to(StepRow& row, const StepRow& other) {
  row.active_peak = std::max(row.active_peak, other.active_peak);
  row.reserved_peak = std::max(row.reserved_peak, other.reserved_peak);
  for (const auto& [phase, bytes] : other.active_by_phase) {
    row.active_by_phase[phase] = std::max(row.active_by_phase[phase], bytes);
  }
}

/// Consecutive steps with the same peaks.
struct EqualSteps {
  const StepPeaks* peaks;
  std::int64_t first;
  std::int64_t last;
};

std::vector<EqualSteps> equal_steps(const std::vector<StepPeaks>& steps) {
  std::vector<EqualSteps> groups;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const std::int64_t number = steps[i].step.value_or(static_cast<std::int64_t>(i));
    if (!groups.empty() && groups.back().peaks->same_peaks(steps[i])) {
      groups.back().last = number;
    } else {
      groups.push_back({&steps[i], number, number});
    }
  }
  return groups;
}

}  // namespace

std::vector<StepRow> step_rows(const Report& report, std::size_t limit) {
  std::vector<StepRow> rows;
  const auto add_outside = [&](const std::optional<StepPeaks>& part, const char* label) {
    if (part && !part->phases.empty()) rows.push_back(row_of(*part, label));
  };
  add_outside(report.before_steps, "before");
  const std::vector<EqualSteps> groups = equal_steps(report.steps);
  const bool has_middle = groups.size() > limit;
  const std::size_t tail = groups.size() - limit / 4;
  const std::size_t head = limit - limit / 4 - 1;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const StepRow row = row_of(*groups[i].peaks, label_of(groups[i].first, groups[i].last));
    if (has_middle && i > head && i < tail) {
      raise_to(rows.back(), row);
      continue;
    }
    rows.push_back(row);
    if (has_middle && i == head) rows.back().label = label_of(groups[head].first, groups[tail - 1].last) + " (highest)";
  }
  add_outside(report.after_steps, "after");
  return rows;
}

std::vector<std::string> phases_of(const std::vector<StepRow>& rows) {
  std::set<std::string> present;
  for (const StepRow& row : rows) {
    for (const auto& [phase, bytes] : row.active_by_phase) present.insert(phase);
  }
  std::vector<std::string> phases;
  for (const char* known : {"forward", "backward", "optimizer", "other"}) {
    if (present.erase(known) > 0) phases.emplace_back(known);
  }
  phases.insert(phases.end(), present.begin(), present.end());
  return phases;
}

std::string step_table(const std::vector<StepRow>& rows, const Amounts& amounts) {
  if (rows.empty()) return "";
  const std::vector<std::string> phases = phases_of(rows);
  std::vector<Column> columns{{"step"}, {"active", Align::kRight}, {"reserved", Align::kRight}};
  for (const std::string& phase : phases) columns.push_back({phase, Align::kRight});
  Table table(columns);
  for (const StepRow& row : rows) {
    std::vector<std::string> cells{row.label, amounts(row.active_peak), amounts(row.reserved_peak)};
    for (const std::string& phase : phases) {
      const auto found = row.active_by_phase.find(phase);
      cells.push_back(found == row.active_by_phase.end() ? "" : amounts(found->second));
    }
    table.add(cells);
  }
  return "\nPeaks by step; of each phase, the active peak\n" + table.render();
}

std::string books_table(const Peak& peak, Bytes card, const Amounts& amounts) {
  Table table({{"book"}, {"peak", Align::kRight}, {"of the card", Align::kRight}, {"what it counts"}});
  const auto add = [&](const char* name, Bytes bytes, const std::string& what) {
    table.add({name, amounts(bytes), share(bytes, card), what});
  };
  add("active", peak.active, "tensors, as the caching allocator rounds them");
  add("reserved", peak.reserved, fmt::format("the caching allocator's segments ({})", peak.segments));
  add("device", peak.device, "everything on the card, as nvidia-smi would show it");
  const DeviceParts& parts = peak.device_parts;
  add("  segments", parts.segments, "");
  add("  context", parts.context, "estimate of the GPU's profile");
  if (parts.nccl > 0) add("  NCCL", parts.nccl, "estimate of the GPU's profile");
  if (parts.handles > 0) add("  handles", parts.handles, "cuBLAS, cuDNN: estimate of the GPU's profile");
  return table.render();
}

std::string peak_moment(const Peak& peak) {
  return moment(peak.step, peak.phase) + (peak.module.empty() ? "" : ", " + peak.module);
}

std::string peak_by_category(const Peak& peak, const std::string& when, const Amounts& amounts) {
  Table table({{"category"}, {"bytes", Align::kRight}, {"share", Align::kRight}, {"what it is"}});
  for (const CategoryBytes& entry : peak.categories) {
    const Category* const known = find_category(entry.category);
    table.add({entry.category, amounts(entry.bytes), share(entry.bytes, peak.active),
               std::string(known == nullptr ? "" : known->words)});
  }
  return "\nThe peak: " + when + "\n" + (table.empty() ? "" : table.render());
}

}  // namespace plimsoll::report
