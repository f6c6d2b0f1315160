#include "plimsoll/report/verdict.h"

#include <fmt/format.h>

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
  const bool in_setup = !oom.step && oom.phase.empty();
  return fmt::format("Memory ran out {}{}: {}, {} free{} ({} active, {} reserved).",
                     in_setup ? "while the model was built" : (oom.step ? "in " : "") + moment(oom.step, oom.phase),
                     oom.module.empty() ? "" : ", in module " + oom.module,
                     oom.requested == 0 ? first_line(oom.message) : amounts(oom.requested) + " requested",
                     amounts(oom.device_free),
                     oom.device_total < report.gpu.memory
                         ? fmt::format(" of the {} that the job allows itself", amounts(oom.device_total))
                         : "",
                     amounts(oom.active), amounts(oom.reserved));
}

std::int64_t left_on_card(const Report& report) {
  return static_cast<std::int64_t>(report.gpu.memory) - static_cast<std::int64_t>(report.peak.device);
}

Verdict of_planned(const Report& report) {
  return {.fits = !report.oom,
          .outcome = report.oom ? Outcome::kOutOfMemory : Outcome::kFits,
          .spare = left_on_card(report)};
}

Verdict of_script(const Report& report, const ScriptRun& run) {
  if (report.oom) {
    Verdict verdict{.fits = false, .outcome = Outcome::kOutOfMemory};
    // The run was not repeated on a larger card: only the missing part of one allocation is known.
    if (report.oom->requested > report.oom->device_free) {
      verdict.spare = -static_cast<std::int64_t>(report.oom->requested - report.oom->device_free);
    }
    return verdict;
  }
  Verdict verdict;
  const bool ended_well = run.exit_code == 0 && !run.signal;
  verdict.outcome = run.signal           ? Outcome::kStopped
                    : !ended_well        ? Outcome::kScriptFailed
                    : run.processes == 0 ? Outcome::kNoVerdict
                                         : Outcome::kFits;
  if (run.processes == 0 || (!run.complete && !ended_well)) return verdict;
  verdict.fits = true;
  verdict.spare = left_on_card(report);
  return verdict;
}

/// "the script was stopped (SIGTERM)", "the script failed with ValueError: bad batch"
std::string how_it_ended(const ScriptRun& run) {
  if (run.signal) {
    const char* name = sigabbrev_np(static_cast<int>(*run.signal));
    return fmt::format("the script was stopped ({}{})", name != nullptr ? "SIG" : "",
                       name != nullptr ? name : std::to_string(*run.signal));
  }
  if (!run.error) return fmt::format("the script ended with exit code {}", run.exit_code);
  const std::string message = first_line(run.error->message);
  return fmt::format("the script failed with {}{}{}", run.error->type, message.empty() ? "" : ": ", message);
}

std::string capitalised(std::string text) {
  if (!text.empty()) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

std::string usage(const Report& report, const Verdict& verdict, const Amounts& amounts) {
  return fmt::format("{} used on {}, {}", part_of(report.peak.device, report.gpu.memory, amounts),
                     with_article(report.gpu.name), spare_words(verdict, amounts));
}

std::string does_not_fit(const Report& report, const Verdict& verdict, const Amounts& amounts) {
  if (verdict.outcome == Outcome::kTooLittleLeft) {
    return fmt::format("{}, less than the reserve of {}.", usage(report, verdict, amounts), amounts(verdict.reserve));
  }
  const Gpu& gpu = report.gpu;
  const Bytes device = report.peak.device;
  if (report.planned() != nullptr) {
    if (report.is_cut_short() || device > gpu.memory) {
      return fmt::format("needs {}{}, the {} has {}.", report.is_cut_short() ? "more than " : "", amounts(device),
                         gpu.name, amounts(gpu.memory));
    }
    // Near the end of a card the allocator may need more than it takes if there is enough room.
    return fmt::format("memory ran out, although the job uses only {} on a larger card than the {}.",
                       part_of(device, gpu.memory, amounts), gpu.name);
  }
  const OutOfMemory& oom = *report.oom;
  if (oom.requested == 0) return fmt::format("{} ({}).", first_line(oom.message), gpu.name);
  return fmt::format(
      fmt::runtime(oom.device_total < gpu.memory
                       ? "an allocation of {} failed, with {} free of the {} that the script allows itself on the {}{}"
                       : "an allocation of {} failed, with {} of {} free on the {}{}"),
      amounts(oom.requested), amounts(oom.device_free), amounts(oom.device_total), gpu.name,
      oom.requested <= oom.device_free ? "; the free memory is in pieces that are too small." : ".");
}

std::string no_verdict(const Report& report, const Verdict& verdict) {
  const ScriptRun* run = report.script();
  if (run == nullptr || verdict.outcome == Outcome::kNoVerdict) {
    if (run == nullptr || !run->complete) return "the script used no GPU.";
    return report.torch.empty() ? "the script used no GPU; it did not import torch."
                                : "the script used no GPU; it put no tensor on one.";
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
  if (report.alloc_retries == 0) return text;
  return fmt::format("{} PyTorch had to flush its memory cache {}; this slows training.", text,
                     counted(report.alloc_retries, "time"));
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
  const char* text = book == "active" ? "The tensors alone ({}) exceed the card; less fragmentation would not help."
                     : book == "reserved"
                         ? "The tensors ({}) do not exceed the card, the allocator's segments ({}) do. The difference "
                           "is gaps between tensors and cached memory."
                     : book == "device"
                         ? "The tensors ({}) and the allocator's segments ({}) do not exceed the card. The CUDA "
                           "context, NCCL and library handles add the rest."
                         : "On a larger card the job needs less than this card has. Near the end of a card the "
                           "allocator takes memory in other pieces, and it found no piece that was large enough.";
  return fmt::format(fmt::runtime(text), amounts(peak.active), amounts(peak.reserved));
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
