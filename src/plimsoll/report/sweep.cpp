#include "plimsoll/report/sweep.h"

#include <algorithm>

#include "plimsoll/report/plan_verdict.h"

namespace plimsoll::report {
namespace {

constexpr std::size_t kLongestError = 60;

/// A message short enough for a table. The whole one is in the JSON.
std::string error_excerpt(const std::string& error) {
  const std::string line = first_line(error);
  if (line.size() <= kLongestError) return line;
  std::size_t end = kLongestError - 3;
  while (end > 0 && (static_cast<unsigned char>(line[end]) & 0xC0U) == 0x80U) --end;  // not inside a character
  return line.substr(0, end) + "...";
}

std::string summary(const Sweep& sweep, Colour colour) {
  std::size_t fitting = 0;
  std::size_t failed = 0;
  for (const SweepRow& row : sweep.rows) {
    if (!row.result) ++failed;
    if (row.result && row.result->fits()) ++fitting;
  }
  const std::string of = " of " + counted(sweep.rows.size(), "combination");
  std::string text;
  if (fitting > 0) {
    text = paint("fits:", Ink::kGood, colour) + " " + std::to_string(fitting) + of;
  } else {
    text = paint("does not fit:", Ink::kBad, colour) + " none" + of;
  }
  text += " of " + sweep.model;
  if (!sweep.varies_card()) text += " (" + sweep.gpu.name + ", " + format_bytes(sweep.gpu.memory) + ")";
  return text + (failed > 0 ? ", " + std::to_string(failed) + " could not be run" : "") + "\n";
}

std::vector<std::string> cells_of(const SweepRow& row, const Amounts& amounts) {
  std::vector<std::string> cells = row.values;
  if (!row.result) {
    cells.insert(cells.end(), {"error", "", "", "", "", error_excerpt(row.error)});
    return cells;
  }
  const PlanReport& report = *row.result;
  cells.insert(cells.end(),
               {verdict_words(verdict_of(report)), amounts(report.peak.active), amounts(report.peak.reserved),
                amounts(report.peak.device), spare_or_short(report, amounts), peak_moment(report.peak)});
  return cells;
}

}  // namespace

bool Sweep::varies_card() const {
  return std::any_of(axes.begin(), axes.end(),
                     [](const std::string& axis) { return axis == "gpu" || axis == "gpu-memory"; });
}

std::string to_text(const Sweep& sweep, const PlanTextOptions& options) {
  const std::string first = summary(sweep, options.colour);
  if (options.quiet || sweep.rows.empty()) return first;
  std::vector<Column> columns;
  for (const std::string& axis : sweep.axes) columns.push_back({axis, Align::kRight});
  columns.insert(columns.end(), {{"verdict"},
                                 {"active", Align::kRight},
                                 {"reserved", Align::kRight},
                                 {"device", Align::kRight},
                                 {"beside the card", Align::kRight},
                                 {"the peak"}});
  Table table(columns);
  for (const SweepRow& row : sweep.rows) table.add(cells_of(row, Amounts(options.unit)));
  return first + "\n" + table.render();
}

}  // namespace plimsoll::report
