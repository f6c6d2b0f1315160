#include "plimsoll/report/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "plimsoll/report/text/sections.h"
#include "plimsoll/report/verdict.h"

namespace plimsoll::report {
namespace {

std::string summary(const Sweep& sweep, Colour colour) {
  std::size_t fitting = 0;
  std::size_t failed = 0;
  for (const SweepRow& row : sweep.rows) {
    if (!row.result) ++failed;
    if (row.result && row.result->fits() == true) ++fitting;
  }
  const bool none_ran = failed == sweep.rows.size();
  const std::string verdict = fitting > 0 ? paint("Fits:", Ink::kGood, colour)
                              : none_ran  ? paint("No verdict:", Ink::kWarning, colour)
                                          : paint("Does not fit:", Ink::kBad, colour);
  std::string text = fmt::format("{} {} of {} of {}", verdict, fitting > 0 ? std::to_string(fitting) : "none",
                                 counted(sweep.rows.size(), "combination"), sweep.model);
  if (!sweep.varies_card()) text += fmt::format(" ({}, {})", sweep.gpu.name, format_bytes(sweep.gpu.memory));
  if (none_ran && failed > 0) {
    text += " could be run. The first error: " + first_line(sweep.rows.front().error);
  } else if (failed > 0) {
    text += fmt::format(", {} could not be run", failed);
  }
  return text + "\n";
}

std::vector<std::string> cells_of(const SweepRow& row, const Amounts& amounts) {
  std::vector<std::string> cells = row.values;
  if (!row.result) {
    cells.insert(cells.end(), {"error", "", "", "", "", excerpt(first_line(row.error), 60)});
    return cells;
  }
  const Report& report = *row.result;
  cells.insert(cells.end(),
               {verdict_words(report.verdict), amounts(report.peak.active), amounts(report.peak.reserved),
                amounts(report.peak.device), spare_words(report.verdict, amounts), peak_moment(report.peak)});
  return cells;
}

/// The value of a flag with its type. It does not depend on the result of the row.
JobValue typed(const std::string& text) {
  if (text == "true" || text == "false") return text == "true";
  const char* end = text.data() + text.size();
  std::int64_t whole = 0;
  const auto as_whole = std::from_chars(text.data(), end, whole);
  if (as_whole.ec == std::errc() && as_whole.ptr == end) return whole;
  double number = 0;
  const auto as_number = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  if (as_number.ec == std::errc() && as_number.ptr == end &&
      text.find_first_not_of("-.0123456789") == std::string::npos)
    return number;
  return text;
}

}  // namespace

bool Sweep::varies_card() const {
  return std::any_of(axes.begin(), axes.end(),
                     [](const std::string& axis) { return axis == "gpu" || axis == "gpu-memory"; });
}

std::string to_text(const Sweep& sweep, const TextOptions& options) {
  const std::string first = summary(sweep, options.colour);
  if (options.quiet || sweep.rows.empty()) return first;
  std::vector<Column> columns;
  for (const std::string& axis : sweep.axes) columns.push_back({axis, Align::kRight});
  columns.insert(columns.end(), {{"verdict"},
                                 {"active", Align::kRight},
                                 {"reserved", Align::kRight},
                                 {"device", Align::kRight},
                                 {"headroom", Align::kRight},
                                 {"peak"}});
  Table table(columns);
  for (const SweepRow& row : sweep.rows) table.add(cells_of(row, Amounts(options.unit)));
  return first + "\n" + table.render();
}

std::vector<std::string> axes_of(const Sweep& sweep) {
  std::vector<std::string> axes;
  for (const std::string& axis : sweep.axes) axes.push_back(underscored(axis));
  return axes;
}

std::vector<SweepLine> lines_of(const Sweep& sweep) {
  std::vector<SweepLine> lines;
  for (const SweepRow& row : sweep.rows) {
    SweepLine& line = lines.emplace_back();
    for (std::size_t i = 0; i < std::min(sweep.axes.size(), row.values.size()); ++i) {
      line.job.emplace_back(sweep.axes[i], typed(row.values[i]));
    }
    if (row.result) line.result = &*row.result;
    if (!row.result) line.error = row.error;
  }
  return lines;
}

}  // namespace plimsoll::report
