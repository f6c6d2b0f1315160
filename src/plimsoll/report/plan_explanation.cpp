#include "plimsoll/report/plan_explanation.h"

#include <algorithm>

#include "plimsoll/report/plan_subject.h"
#include "plimsoll/report/plan_verdict.h"

namespace plimsoll::report {
namespace {

constexpr std::size_t kWidth = 120;

/// The amount stands in a column of its own, so the sentence goes without.
std::string without_amount(const PlanCause& cause) {
  const std::string amount = format_bytes(cause.bytes) + " ";
  return cause.sentence.starts_with(amount) ? cause.sentence.substr(amount.size()) : cause.sentence;
}

std::string right(const std::string& text, std::size_t width) {
  return std::string(width - std::min(width, width_of(text)), ' ') + text;
}

std::string causes(const PlanReport& report, const Amounts& amounts) {
  if (report.causes.empty()) return "";
  std::size_t amount_width = 0;
  for (const PlanCause& cause : report.causes) amount_width = std::max(amount_width, width_of(amounts(cause.bytes)));
  std::string text = "\nThe peak, cause by cause: " + amounts(report.peak.active) + " active; " +
                     peak_moment_in_full(report.peak) + "\n";
  constexpr std::size_t kShareWidth = 7;
  const std::string indent(2 + amount_width + 2 + kShareWidth + 2, ' ');
  for (const PlanCause& cause : report.causes) {
    const std::string start = "  " + right(amounts(cause.bytes), amount_width) + "  " +
                              right(share(cause.bytes, report.peak.active), kShareWidth) + "  ";
    // Blanks before the first word are part of the line's width, and wrapped() breaks at blanks.
    const std::string lines = wrapped(std::string(indent.size(), '.') + without_amount(cause), kWidth, indent);
    text += start + lines.substr(indent.size()) + "\n";
  }
  return text;
}

std::string savings_table(const PlanReport& report, const std::vector<const Saving*>& useful, const Amounts& amounts) {
  if (useful.empty()) return "  None of the changes that were tried saves memory.\n";
  Table table({{"change"},
               {"saves", Align::kRight},
               {"device", Align::kRight},
               {"reserved", Align::kRight},
               {"active", Align::kRight},
               {"verdict"},
               {""}});
  for (const Saving* saving : useful) {
    const PlanReport& after = *saving->result;
    table.add({saving->change, amounts(report.peak.device - after.peak.device), amounts(after.peak.device),
               amounts(after.peak.reserved), amounts(after.peak.active), verdict_words(verdict_of(after)),
               spare_or_short(after, amounts)});
  }
  return table.render();
}

}  // namespace

std::string explanation_text(const PlanReport& report, const std::vector<Saving>& savings,
                             const PlanTextOptions& options) {
  const Amounts amounts(options.unit);
  std::string text = verdict_line(report, amounts, options.colour);
  if (options.quiet) return text;
  text += why_it_does_not_fit(report, amounts) + subject(report) + causes(report, amounts);
  if (savings.empty()) return text;

  std::vector<const Saving*> useful;
  std::vector<const Saving*> useless;
  std::string failures;
  for (const Saving& saving : savings) {
    if (!saving.result) {
      failures += "  " + saving.change + " could not be tried: " + first_line(saving.failure) + "\n";
    } else {
      (saving.result->peak.device < report.peak.device ? useful : useless).push_back(&saving);
    }
  }
  const auto by_device = [](const Saving* a, const Saving* b) {
    return a->result->peak.device < b->result->peak.device;
  };
  std::stable_sort(useful.begin(), useful.end(), by_device);
  std::stable_sort(useless.begin(), useless.end(), by_device);
  text += "\nWhat one change alone saves on the device book; each was run\n" + savings_table(report, useful, amounts);
  if (!useless.empty()) {
    std::string list = "No help:";
    for (const Saving* saving : useless) {
      list += (saving == useless.front() ? " " : ", ") + saving->change + " (" +
              amounts.change(report.peak.device, saving->result->peak.device) + ")";
    }
    text += "  " + wrapped(list, kWidth - 2, "  ") + "\n";
  }
  return text + failures;
}

}  // namespace plimsoll::report
