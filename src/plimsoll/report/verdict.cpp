#include "plimsoll/report/verdict.h"

#include <algorithm>
#include <cctype>
#include <cstring>

namespace plimsoll::report {
namespace {

std::string line(const std::string& text) { return "  " + wrapped(text, kLineWidth - 2, "  ") + "\n"; }

/// "an H100-80GB", "a B200-180GB"
std::string with_article(const std::string& name) {
  const auto at = [&](std::size_t i) { return i < name.size() ? static_cast<unsigned char>(name[i]) : 0U; };
  const bool is_spelled_out = std::isdigit(at(1)) != 0 || std::isupper(at(1)) != 0;
  const std::string vowels = is_spelled_out ? "AEFHILMNORSX8" : "AEIOUaeiou8";
  return (vowels.find(static_cast<char>(at(0))) != std::string::npos ? "an " : "a ") + name;
}

std::string ran_out(const Report& report, const Amounts& amounts) {
  const OutOfMemory& oom = *report.oom;
  std::string text = "Memory ran out ";
  if (!oom.step && oom.phase.empty()) {
    text += "while the model was built";
  } else {
    text += (oom.step ? "in " : "") + moment(oom.step, oom.phase);
  }
  if (!oom.module.empty()) text += ", in module " + oom.module;
  text += ": ";
  text += oom.requested == 0 ? first_line(oom.message) : amounts(oom.requested) + " requested";
  text += ", " + amounts(oom.device_free) + " free";
  if (oom.device_total < report.gpu.memory)
    text += " of the " + amounts(oom.device_total) + " that the job allows itself";
  return text + " (" + amounts(oom.active) + " active, " + amounts(oom.reserved) + " reserved).";
}

Verdict of_planned(const Report& report) {
  Verdict verdict;
  verdict.fits = !report.oom;
  verdict.outcome = report.oom ? Outcome::kOutOfMemory : Outcome::kFits;
  verdict.spare = static_cast<std::int64_t>(report.gpu.memory) - static_cast<std::int64_t>(report.peak.device);
  return verdict;
}

Verdict of_script(const Report& report, const ScriptRun& run) {
  Verdict verdict;
  if (report.oom) {
    verdict.fits = false;
    verdict.outcome = Outcome::kOutOfMemory;
    // The run was not repeated on a larger card: only the missing part of one allocation is known.
    if (report.oom->requested > report.oom->device_free) {
      verdict.spare = -static_cast<std::int64_t>(report.oom->requested - report.oom->device_free);
    }
    return verdict;
  }
  const bool ended_well = run.exit_code == 0 && !run.signal;
  verdict.outcome = run.signal           ? Outcome::kStopped
                    : !ended_well        ? Outcome::kScriptFailed
                    : run.processes == 0 ? Outcome::kNoVerdict
                                         : Outcome::kFits;
  if (run.processes == 0 || (!run.complete && !ended_well)) return verdict;
  verdict.fits = true;
  verdict.spare = static_cast<std::int64_t>(report.gpu.memory) - static_cast<std::int64_t>(report.peak.device);
  return verdict;
}

/// "the script was stopped (SIGTERM)", "the script failed with ValueError: bad batch"
std::string how_it_ended(const ScriptRun& run) {
  if (run.signal) {
    const char* name = sigabbrev_np(static_cast<int>(*run.signal));
    return "the script was stopped (" + (name != nullptr ? "SIG" + std::string(name) : std::to_string(*run.signal)) +
           ")";
  }
  if (run.error) {
    return "the script failed with " + run.error->type +
           (run.error->message.empty() ? "" : ": " + first_line(run.error->message));
  }
  return "the script ended with exit code " + std::to_string(run.exit_code);
}

std::string capitalised(std::string text) {
  if (!text.empty()) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

std::string usage(const Report& report, const Verdict& verdict, const Amounts& amounts) {
  return part_of(report.peak.device, report.gpu.memory, amounts) + " used on " + with_article(report.gpu.name) + ", " +
         spare_words(verdict, amounts);
}

std::string does_not_fit(const Report& report, const Verdict& verdict, const Amounts& amounts) {
  const std::string card = amounts(report.gpu.memory);
  if (verdict.outcome == Outcome::kTooLittleLeft) {
    return usage(report, verdict, amounts) + ", less than the reserve of " + amounts(verdict.reserve) + ".";
  }
  if (report.planned() != nullptr) {
    const std::string has = ", the " + report.gpu.name + " has " + card + ".";
    if (report.is_cut_short()) return "needs more than " + amounts(report.peak.device) + has;
    // With enough room the allocator takes more than the least that would do.
    if (report.peak.device > report.gpu.memory) return "needs " + amounts(report.peak.device) + has;
    return "memory ran out, although the job uses only " + part_of(report.peak.device, report.gpu.memory, amounts) +
           " on a larger card than the " + report.gpu.name + ".";
  }
  const OutOfMemory& oom = *report.oom;
  if (oom.requested == 0) return first_line(oom.message) + " (" + report.gpu.name + ").";
  std::string text = "an allocation of " + amounts(oom.requested) + " failed, with " + amounts(oom.device_free);
  if (oom.device_total < report.gpu.memory) {
    text += " free of the " + amounts(oom.device_total) + " that the script allows itself";
  } else {
    text += " of " + amounts(oom.device_total) + " free";
  }
  text += " on the " + report.gpu.name;
  return text + (oom.requested <= oom.device_free ? "; the free memory is in pieces that are too small." : ".");
}

std::string no_verdict(const Report& report, const Verdict& verdict) {
  const ScriptRun* run = report.script();
  if (run == nullptr || verdict.outcome == Outcome::kNoVerdict) {
    if (run == nullptr || !run->complete) return "the script used no GPU.";
    return std::string("the script used no GPU; it ") +
           (report.torch.empty() ? "did not import torch." : "put no tensor on it.");
  }
  if (run->processes > 0) return how_it_ended(*run) + " between two steps, before the report was written.";
  return how_it_ended(*run) + (run->signal ? " before the report was written." : "; it had not used the GPU.");
}

std::string sentence_of(const Report& report, const Verdict& verdict, const Amounts& amounts) {
  if (!verdict.fits) return "No verdict: " + no_verdict(report, verdict);
  if (!*verdict.fits) return "Does not fit: " + does_not_fit(report, verdict, amounts);
  std::string text = verdict.outcome != Outcome::kFits ? "Fits as far as it ran: "
                     : verdict.only_just               ? "Fits, but only just: "
                                                       : "Fits: ";
  text += usage(report, verdict, amounts) + ".";
  if (verdict.outcome != Outcome::kFits) text += " " + capitalised(how_it_ended(*report.script())) + ".";
  if (report.alloc_retries > 0) {
    text +=
        " PyTorch had to flush its memory cache " + counted(report.alloc_retries, "time") + "; this slows training.";
  }
  return text;
}

}  // namespace

Verdict verdict_of(const Report& report, Bytes reserve) {
  const ScriptRun* run = report.script();
  Verdict verdict = run != nullptr ? of_script(report, *run) : of_planned(report);
  verdict.reserve = reserve;
  verdict.estimated = report.peak.device_parts.estimated();
  if (verdict.fits == true) {
    if (*verdict.spare < static_cast<std::int64_t>(reserve)) {
      verdict.fits = false;
      verdict.outcome = Outcome::kTooLittleLeft;
    } else {
      verdict.only_just = report.alloc_retries > 0 || *verdict.spare < static_cast<std::int64_t>(verdict.estimated);
    }
  }
  verdict.sentence = sentence_of(report, verdict, Amounts());
  return verdict;
}

std::string verdict_sentence(const Report& report, const Amounts& amounts) {
  return sentence_of(report, report.verdict, amounts);
}

std::string verdict_words(const Verdict& verdict) {
  if (!verdict.fits) return "no verdict";
  if (!*verdict.fits) return "does not fit";
  return verdict.only_just ? "fits, only just" : "fits";
}

Ink verdict_ink(const Verdict& verdict) {
  if (verdict.fits == false) return Ink::kBad;
  return verdict.fits && !verdict.only_just && verdict.outcome == Outcome::kFits ? Ink::kGood : Ink::kWarning;
}

std::string verdict_line(const Report& report, const Amounts& amounts, Colour colour) {
  const std::string text = verdict_sentence(report, amounts);
  const std::size_t colon = text.find(':') + 1;
  return paint(text.substr(0, colon), verdict_ink(report.verdict), colour) + text.substr(colon) + "\n";
}

std::string spare_words(const Verdict& verdict, const Amounts& amounts) {
  if (!verdict.spare) return "";
  const auto bytes = static_cast<Bytes>(std::abs(*verdict.spare));
  return amounts(bytes) + (*verdict.spare < 0 ? " too much" : " left");
}

std::string book_that_exceeds(const Peak& peak, Bytes card) {
  if (peak.active > card) return "active";
  if (peak.reserved > card) return "reserved";
  return peak.device > card ? "device" : "";
}

std::string exceeding_book(const Report& report, const Amounts& amounts) {
  const Peak& peak = report.peak;
  const std::string book = book_that_exceeds(peak, report.gpu.memory);
  const std::string active = amounts(peak.active);
  const std::string reserved = amounts(peak.reserved);
  if (book == "active") {
    return "The tensors alone (" + active + ") exceed the card; less fragmentation would not help.";
  }
  if (book == "reserved") {
    return "The tensors (" + active + ") do not exceed the card, the allocator's segments (" + reserved +
           ") do. The difference is gaps between tensors and cached memory.";
  }
  if (book == "device") {
    return "The tensors (" + active + ") and the allocator's segments (" + reserved +
           ") do not exceed the card. The CUDA context, NCCL and library handles add the rest.";
  }
  return "On a larger card the job needs less than this card has. Near the end of a card the allocator takes memory in "
         "other pieces, and it found no piece that was large enough.";
}

std::string why_it_does_not_fit(const Report& report, const Amounts& amounts) {
  if (!report.oom) return "";
  return line(exceeding_book(report, amounts)) + line(ran_out(report, amounts)) +
         line(report.is_cut_short()
                  ? "Memory ran out on the largest card that plimsoll tried too. The values below end there."
                  : "The values below are from the same job on a card that is large enough.");
}

std::string part_of(Bytes part, Bytes whole, const Amounts& amounts) {
  std::string text = amounts(part);
  const std::string all = amounts(whole);
  const std::string unit = all.substr(all.find(' '));
  if (text.ends_with(unit)) text.erase(text.size() - unit.size());
  return text + " of " + all;
}

}  // namespace plimsoll::report
