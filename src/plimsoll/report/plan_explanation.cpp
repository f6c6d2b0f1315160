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

/// A job that barely fits fills the card whatever it needs: there only the active book tells.
bool is_squeezed(const PlanReport& report) { return report.fits() && report.alloc_retries > 0; }

Bytes measured(const PlanReport& report, bool active) { return active ? report.peak.active : report.peak.device; }

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
    const bool active = is_squeezed(report);
    table.add({saving->change, amounts(measured(report, active) - measured(after, active)), amounts(after.peak.device),
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
  text += std::string("\nWhat one change alone saves on the ") + (active ? "active" : "device") +
          " book; each was run" + (active ? " (a job that barely fits fills the card whatever it needs)\n" : "\n") +
          savings_table(report, useful, amounts);
  if (!useless.empty()) {
    std::string list = "No help:";
    for (const Saving* saving : useless) {
      list += (saving == useless.front() ? " " : ", ") + saving->change + " (" +
              amounts.change(measured(report, active), measured(*saving->result, active)) + ")";
    }
    text += "  " + wrapped(list, kWidth - 2, "  ") + "\n";
  }
  return text + failures;
}

}  // namespace plimsoll::report
