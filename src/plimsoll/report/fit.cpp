#include "plimsoll/report/fit.h"

#include <algorithm>

#include "plimsoll/report/plan_verdict.h"
#include "plimsoll/report/text/plan_subject.h"

namespace plimsoll::report {
namespace {

Bytes bytes_of(const AttributedPeak& peak, const std::string& category) {
  for (const CategoryBytes& entry : peak.categories) {
    if (entry.category == category) return entry.bytes;
  }
  return 0;
}

std::string headline(const Fit& fit, const Amounts& amounts, Colour colour) {
  const bool most = fit.direction == Fit::Direction::kMaximize;
  if (!fit.limit) {
    const std::string with = fit.beyond ? " not even with " + fit.what + " " + std::to_string(*fit.beyond)
                                        : " with no " + fit.what + " that was tried";
    return paint("does not fit:", Ink::kBad, colour) + with + " (" + fit.gpu.name + ")\n";
  }
  const Verdict verdict = fit.at_limit ? verdict_of(*fit.at_limit) : Verdict::kFits;
  std::string text = paint(verdict_words(verdict) + ":", verdict_ink(verdict), colour) + " " + fit.what + " " +
                     std::to_string(*fit.limit) + (most && fit.beyond ? " at most" : " at least");
  if (!fit.beyond) text += std::string("; nothing ") + (most ? "larger" : "smaller") + " was tried";
  if (fit.at_limit) {
    text += "; " + amounts(fit.at_limit->peak.device) + " of " + amounts(fit.gpu.memory) + " on the device book, " +
            spare_or_short(*fit.at_limit, amounts);
  }
  return text + " (" + fit.gpu.name + ")\n";
}

std::string what_binds(const Fit& fit, const Amounts& amounts) {
  const auto binding = binding_of(fit);
  if (!binding) return "";
  const PlanReport& report = *fit.at_beyond;
  std::string text = "What binds: with " + fit.what + " " + std::to_string(*fit.beyond) + " ";
  if (binding->book.empty()) {
    text += "memory runs out, although no book exceeds the card where there is more room";
  } else {
    const Bytes bytes = binding->book == "active"     ? report.peak.active
                        : binding->book == "reserved" ? report.peak.reserved
                                                      : report.peak.device;
    text += "the " + binding->book + " book takes " + amounts(bytes) + ", " + amounts(bytes - report.gpu.memory) +
            " more than the card has";
  }
  text += "; the peak: " + peak_moment(report.peak) + ".";
  if (!binding->category.empty()) {
    text += fit.at_limit ? " Most of what is added: " : " Most of it: ";
    text += binding->category + ", " + amounts(binding->category_bytes) + ".";
  }
  return "  " + wrapped(text, 118, "  ") + "\n";
}

std::string side_by_side(const Fit& fit, const Amounts& amounts) {
  Table table({{fit.what, Align::kRight},
               {"verdict"},
               {"active", Align::kRight},
               {"reserved", Align::kRight},
               {"device", Align::kRight},
               {"beside the card", Align::kRight},
               {"the peak"}});
  const auto add = [&](const std::optional<std::int64_t>& value, const std::optional<PlanReport>& report) {
    if (!value || !report) return;
    table.add({std::to_string(*value), verdict_words(verdict_of(*report)), amounts(report->peak.active),
               amounts(report->peak.reserved), amounts(report->peak.device), spare_or_short(*report, amounts),
               peak_moment(report->peak)});
  };
  add(fit.limit, fit.at_limit);
  add(fit.beyond, fit.at_beyond);
  return table.empty() ? "" : "\n" + table.render();
}

std::string tried(const Fit& fit) {
  if (fit.probes.empty()) return "";
  std::string text = "Tried:";
  for (const FitProbe& probe : fit.probes) {
    text += (&probe == &fit.probes.front() ? " " : ", ") + std::to_string(probe.value) +
            (probe.fits ? " fits" : " does not");
  }
  return "\n  " + wrapped(text, 118, "  ") + "\n";
}

}  // namespace

std::optional<FitBinding> binding_of(const Fit& fit) {
  if (!fit.beyond || !fit.at_beyond) return std::nullopt;
  const AttributedPeak& peak = fit.at_beyond->peak;
  FitBinding binding{book_that_exceeds(peak, fit.at_beyond->gpu.memory), "", 0, peak.phase, peak.module};
  for (const CategoryBytes& entry : peak.categories) {
    const Bytes before = fit.at_limit ? bytes_of(fit.at_limit->peak, entry.category) : 0;
    const Bytes grown = entry.bytes - std::min(entry.bytes, before);
    if (grown > binding.category_bytes) {
      binding.category = entry.category;
      binding.category_bytes = grown;
    }
  }
  return binding;
}

std::string to_text(const Fit& fit, const PlanTextOptions& options) {
  const Amounts amounts(options.unit);
  std::string text = headline(fit, amounts, options.colour);
  if (options.quiet) return text;
  text += what_binds(fit, amounts);
  if (fit.at_limit || fit.at_beyond) text += subject(fit.at_limit ? *fit.at_limit : *fit.at_beyond);
  text += side_by_side(fit, amounts) + tried(fit);
  if (!fit.note.empty())
    text += "\n" + paint("note:", Ink::kWarning, options.colour) + " " + wrapped(fit.note, 114, "  ") + "\n";
  return text;
}

}  // namespace plimsoll::report
