#include "plimsoll/report/plan_report.h"

#include <algorithm>

#include "plimsoll/report/plan_verdict.h"
#include "plimsoll/report/text/module_table.h"
#include "plimsoll/report/text/peak_tables.h"
#include "plimsoll/report/text/plan_subject.h"

namespace plimsoll::report {
namespace {

bool same_name(std::string_view a, std::string_view b) {
  const auto plain = [](char c) { return c == '-' ? '_' : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](char x, char y) { return plain(x) == plain(y); });
}

std::string host(const PlanReport& report, const Amounts& amounts) {
  if (report.host == 0) return "";  // Nothing is offloaded.
  std::string text = "\nHost memory: " + amounts(report.host) + " at its peak";
  if (report.host_pinned > 0) text += ", " + amounts(report.host_pinned) + " of it pinned";
  return text + "\n";
}

std::string notes(const PlanReport& report, Colour colour) {
  std::string text;
  for (const std::string& note : report.notes) {
    text += "\n" + paint("note:", Ink::kWarning, colour) + " " + wrapped(note, 114, "  ") + "\n";
  }
  return text;
}

}  // namespace

JobValue job_value(const JobValues& job, std::string_view name) {
  for (const auto& [known, value] : job) {
    if (same_name(known, name)) return value;
  }
  return nullptr;
}

std::string shown(const JobValue& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "yes" : "no";
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return std::to_string(*whole);
  if (const auto* number = std::get_if<double>(&value)) return decimal(*number, "%g");
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  return "none";
}

std::string to_text(const PlanReport& report, const PlanTextOptions& options) {
  const Amounts amounts(options.unit);
  const std::string verdict = verdict_line(report, amounts, options.colour);
  if (options.quiet) return verdict;
  return verdict + why_it_does_not_fit(report, amounts) + subject(report) + "\n" +
         books_table(report.peak, report.gpu.memory, amounts) +
         peak_by_category(report.peak, peak_moment_in_full(report), amounts) +
         step_table(step_rows(report.before_steps, report.steps, std::nullopt), amounts) +
         module_table(report.modules, report.peak.categories, options.depth, amounts) + host(report, amounts) +
         notes(report, options.colour);
}

}  // namespace plimsoll::report
