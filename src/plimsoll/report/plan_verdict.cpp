#include "plimsoll/report/plan_verdict.h"

namespace plimsoll::report {
namespace {

std::string line(const std::string& text) { return "  " + wrapped(text, kLineWidth - 2, "  ") + "\n"; }

std::string exceeding(const PlanReport& report, const Amounts& amounts) {
  const Peak& peak = report.peak;
  const std::string book = book_that_exceeds(peak, report.gpu.memory);
  const std::string active = amounts(peak.active);
  const std::string reserved = amounts(peak.reserved);
  if (book == "active") {
    return "The active book alone (" + active +
           ") is more than the card: there are too many tensors at once, however well they are placed.";
  }
  if (book == "reserved") {
    return "The active book (" + active + ") is less than the card, the reserved book (" + reserved +
           ") is more: gaps between tensors, and memory that the caching allocator keeps, make the difference.";
  }
  if (book == "device") {
    return "The active (" + active + ") and reserved (" + reserved +
           ") books are less than the card: with the context, NCCL and the libraries' handles beside them it is too "
           "much.";
  }
  return "No book is more than the card where there is more room: near its end the caching allocator takes memory in "
         "other "
         "pieces, and could not find one that was large enough.";
}

std::string ran_out(const PlanReport& report, const Amounts& amounts) {
  const PlanOom& oom = *report.oom;
  std::string text = "Memory ran out ";
  if (!oom.step && oom.phase.empty()) {
    text += "while the model was built";
  } else {
    text += (oom.step ? "in " : "") + moment(oom.step, oom.phase);
  }
  if (!oom.module.empty()) text += ", in module " + oom.module;
  text += ": ";
  // A vendor library or the driver says only that memory ran out, not how much it asked for.
  text += oom.requested == 0 ? first_line(oom.message) : amounts(oom.requested) + " asked for";
  text += ", " + amounts(oom.device_free) + " free on the device";
  if (oom.device_total < report.gpu.memory)
    text += " of the " + amounts(oom.device_total) + " that the job allows itself";
  return text + " (" + amounts(oom.active) + " active, " + amounts(oom.reserved) + " reserved).";
}

}  // namespace

Verdict verdict_of(const PlanReport& report) {
  if (!report.fits()) return Verdict::kDoesNotFit;
  return report.alloc_retries > 0 ? Verdict::kBarely : Verdict::kFits;
}

std::string verdict_words(Verdict verdict) {
  if (verdict == Verdict::kDoesNotFit) return "does not fit";
  return verdict == Verdict::kBarely ? "fits, barely" : "fits";
}

Ink verdict_ink(Verdict verdict) {
  if (verdict == Verdict::kDoesNotFit) return Ink::kBad;
  return verdict == Verdict::kBarely ? Ink::kWarning : Ink::kGood;
}

std::string spare_or_short(const PlanReport& report, const Amounts& amounts) {
  const Bytes card = report.gpu.memory;
  const Bytes device = report.peak.device;
  return device <= card ? amounts(card - device) + " to spare" : amounts(device - card) + " short";
}

std::string book_that_exceeds(const Peak& peak, Bytes card) {
  if (peak.active > card) return "active";
  if (peak.reserved > card) return "reserved";
  return peak.device > card ? "device" : "";
}

std::string verdict_line(const PlanReport& report, const Amounts& amounts, Colour colour) {
  const Verdict verdict = verdict_of(report);
  const std::string device = amounts(report.peak.device);
  const std::string of_card = " of " + amounts(report.gpu.memory) + " on the device book";
  std::string text = paint(verdict_words(verdict) + ":", verdict_ink(verdict), colour) + " ";
  if (report.fits()) {
    text += device + of_card + ", " + spare_or_short(report, amounts);
  } else if (report.is_cut_short()) {
    text += "it takes more than " + device + " on the device book, of the card's " + amounts(report.gpu.memory);
  } else if (report.peak.device > report.gpu.memory) {
    // Where there is room the allocator takes more than it must: this is not the least that would do.
    text += "with room enough it takes " + device + " on the device book, " +
            amounts(report.peak.device - report.gpu.memory) + " more than the card's " + amounts(report.gpu.memory);
  } else {
    text += "memory ran out, although on a larger card the job takes only " + device + of_card;
  }
  text += " (" + report.gpu.name + ")";
  if (verdict == Verdict::kBarely) {
    text += "; the caching allocator had to empty its cache " + counted(report.alloc_retries, "time") +
            " to find room, which stalls the GPU";
  }
  return text + "\n";
}

std::string why_it_does_not_fit(const PlanReport& report, const Amounts& amounts) {
  if (report.fits()) return "";
  return line(exceeding(report, amounts)) + line(ran_out(report, amounts)) +
         line(report.is_cut_short() ? "On the largest card that was tried memory ran out too: what follows ends there."
                                    : "What follows is of the same job on a card that is large enough.");
}

std::string peak_moment(const AttributedPeak& peak) {
  return moment(peak.step, peak.phase) + (peak.module.empty() ? "" : ", " + peak.module);
}

}  // namespace plimsoll::report
