#include <algorithm>

#include "plimsoll/report/text/sections.h"
#include "plimsoll/report/verdict.h"

namespace plimsoll::report {
namespace {

/// A job that flushes the cache fills the card in any case: only the active book shows a saving.
bool is_squeezed(const Report& report) { return report.fits() == true && report.alloc_retries > 0; }

Bytes measured(const Report& report, bool active) { return active ? report.peak.active : report.peak.device; }

/// The causes, with those below 1 % of the peak in one line, unless all are wanted.
std::string causes_of(const Report& report, const Amounts& amounts, bool full) {
  const auto is_listed = [&](const PeakCause& cause) { return full || cause.bytes * 100 >= report.peak.active; };
  std::vector<PeakCause> listed;
  Bytes rest = 0;
  for (const PeakCause& cause : report.causes) {
    if (is_listed(cause)) listed.push_back(cause);
    if (!is_listed(cause)) rest += cause.bytes;
  }
  const std::string text = cause_list(listed, report.peak.active, peak_moment_in_full(report), amounts);
  const std::size_t left_out = report.causes.size() - listed.size();
  if (left_out == 0) return text;
  return text + "  and " + counted(left_out, "smaller cause") + ", " + amounts(rest) + " (--full lists all)\n";
}

std::string savings_table(const Report& report, const std::vector<const Saving*>& useful, const Amounts& amounts,
                          bool full) {
  if (useful.empty()) return "  No change that was tried saves memory.\n";
  std::vector<Column> columns{{"change"}, {"saves", Align::kRight}};
  if (full)
    columns.insert(columns.end(), {{"device", Align::kRight}, {"reserved", Align::kRight}, {"active", Align::kRight}});
  columns.insert(columns.end(), {{"verdict"}, {""}});
  Table table(columns);
  for (const Saving* saving : useful) {
    const Report& after = *saving->result;
    const bool active = is_squeezed(report);
    std::vector<std::string> cells{saving->change, amounts(measured(report, active) - measured(after, active))};
    if (full) {
      cells.insert(cells.end(), {amounts(after.peak.device), amounts(after.peak.reserved), amounts(after.peak.active)});
    }
    cells.insert(cells.end(), {verdict_words(after.verdict), spare_words(after.verdict, amounts)});
    table.add(std::move(cells));
  }
  return table.render();
}

}  // namespace

std::string explanation_text(const Report& report, const std::vector<Saving>& savings, const TextOptions& options) {
  const Amounts amounts(options.unit);
  std::string text = verdict_line(report, amounts, options.colour);
  if (options.quiet) return text;
  text += why_it_does_not_fit(report, amounts) + subject_lines(report) + causes_of(report, amounts, options.full);
  if (savings.empty() || report.is_cut_short()) return text;

  const bool active = is_squeezed(report);
  std::vector<const Saving*> useful;
  std::vector<const Saving*> useless;
  std::string failures;
  for (const Saving& saving : savings) {
    if (!saving.result) {
      failures += "  " + saving.change + " could not be tried: " + first_line(saving.failure) + "\n";
    } else {
      (measured(*saving.result, active) < measured(report, active) ? useful : useless).push_back(&saving);
    }
  }
  const auto by_need = [&](const Saving* a, const Saving* b) {
    return measured(*a->result, active) < measured(*b->result, active);
  };
  std::stable_sort(useful.begin(), useful.end(), by_need);
  std::stable_sort(useless.begin(), useless.end(), by_need);
  text += std::string("\nSavings of one change on the ") + (active ? "active" : "device") +
          " book; each change was run" +
          (active ? " (a job that flushes the cache fills the card in any case)\n" : "\n") +
          savings_table(report, useful, amounts, options.full);
  if (!useless.empty() && !options.full) {
    text += "  Changes that save nothing: " + std::to_string(useless.size()) + " (--full lists them)\n";
  } else if (!useless.empty()) {
    std::string list = "No help:";
    for (const Saving* saving : useless) {
      list += (saving == useless.front() ? " " : ", ") + saving->change + " (" +
              amounts.change(measured(report, active), measured(*saving->result, active)) + ")";
    }
    text += "  " + wrapped(list, kLineWidth - 2, "  ") + "\n";
  }
  return text + failures;
}

}  // namespace plimsoll::report
