#include "plimsoll/report/text/peak_tables.h"

#include "plimsoll/base/categories.h"
#include "plimsoll/report/text/table.h"

namespace plimsoll::report {

std::string books_table(const Peak& peak, Bytes card, const Amounts& amounts) {
  Table table({{"book"}, {"peak", Align::kRight}, {"of the card", Align::kRight}, {"what it counts"}});
  const auto add = [&](const char* name, Bytes bytes, const std::string& what) {
    table.add({name, amounts(bytes), share(bytes, card), what});
  };
  add("active", peak.active, "tensors, as the caching allocator rounds them");
  add("reserved", peak.reserved, "the caching allocator's segments (" + std::to_string(peak.segments) + ")");
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
  std::string text = "\nThe peak: " + when + "\n";
  Table table({{"category"}, {"bytes", Align::kRight}, {"share", Align::kRight}, {"what it is"}});
  for (const CategoryBytes& entry : peak.categories) {
    const Category* const known = find_category(entry.category);
    table.add({entry.category, amounts(entry.bytes), share(entry.bytes, peak.active),
               std::string(known == nullptr ? "" : known->words)});
  }
  return table.empty() ? text : text + table.render();
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

}  // namespace plimsoll::report
