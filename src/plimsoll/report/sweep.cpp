#include "plimsoll/report/sweep.h"

#include <algorithm>
#include <charconv>

#include "plimsoll/report/text/peak_tables.h"
#include "plimsoll/report/verdict.h"

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
    if (row.result && row.result->fits() == true) ++fitting;
  }
  const std::string of = " of " + counted(sweep.rows.size(), "combination");
  std::string text;
  if (fitting > 0) {
    text = paint("Fits:", Ink::kGood, colour) + " " + std::to_string(fitting) + of;
  } else if (failed < sweep.rows.size()) {
    text = paint("Does not fit:", Ink::kBad, colour) + " none" + of;
  } else {
    text = paint("No verdict:", Ink::kWarning, colour) + " none" + of;
  }
  text += " of " + sweep.model;
  if (!sweep.varies_card()) text += " (" + sweep.gpu.name + ", " + format_bytes(sweep.gpu.memory) + ")";
  if (failed == sweep.rows.size() && failed > 0) {
    return text + " could be run. The first error: " + first_line(sweep.rows.front().error) + "\n";
  }
  return text + (failed > 0 ? ", " + std::to_string(failed) + " could not be run" : "") + "\n";
}

std::vector<std::string> cells_of(const SweepRow& row, const Amounts& amounts) {
  std::vector<std::string> cells = row.values;
  if (!row.result) {
    cells.insert(cells.end(), {"error", "", "", "", "", error_excerpt(row.error)});
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
    line.error = row.error;
    if (!row.result) continue;
    const Report& report = *row.result;
    line.verdict = report.verdict;
    line.active = report.peak.active;
    line.reserved = report.peak.reserved;
    line.device = report.peak.device;
    line.memory = report.gpu.memory;
    line.step = report.peak.step;
    line.phase = report.peak.phase;
    line.module = report.peak.module;
    line.alloc_retries = report.alloc_retries;
    line.error.clear();
  }
  return lines;
}

}  // namespace plimsoll::report
