#include "plimsoll/report/fit.h"

#include <fmt/format.h>

#include <algorithm>

#include "plimsoll/report/text/sections.h"
#include "plimsoll/report/verdict.h"

namespace plimsoll::report {
namespace {

Bytes bytes_of(const Peak& peak, const std::string& category) {
  for (const CategoryBytes& entry : peak.categories) {
    if (entry.category == category) return entry.bytes;
  }
  return 0;
}

/// "Largest batch", "Longest sequence", "Fewest GPUs"
std::string limit_words(const Fit& fit) {
  if (fit.what == "seq-len") return "Longest sequence";
  if (fit.what == "gpus") return "Fewest GPUs";
  return (fit.direction == Fit::Direction::kMaximize ? "Largest " : "Smallest ") + fit.what;
}

std::string headline(const Fit& fit, const Amounts& amounts, Colour colour) {
  if (!fit.limit) {
    const std::string tried = fit.beyond ? fmt::format("not even with {} {}", fit.what, *fit.beyond)
                                         : fmt::format("no {} that was tried", fit.what);
    return fmt::format("{} {} ({})\n", paint("Does not fit:", Ink::kBad, colour), tried, fit.gpu.name);
  }
  std::string text = limit_words(fit);
  if (fit.step > 1 && !fit.is_models_limit) text += " (in steps of " + std::to_string(fit.step) + ")";
  text += ": " + std::to_string(*fit.limit) + (fit.is_models_limit ? ", the model's own limit" : "");
  if (fit.at_limit) {
    const Verdict& verdict = fit.at_limit->verdict;
    text = paint(text, verdict_ink(verdict), colour) + (verdict.only_just ? ", but only just" : "") + "; " +
           part_of(fit.at_limit->peak.device, fit.gpu.memory, amounts) + " used, " + spare_words(verdict, amounts);
  }
  if (!fit.beyond && !fit.is_models_limit) {
    text += fit.direction == Fit::Direction::kMaximize ? "; nothing larger was tried" : "; nothing smaller was tried";
  }
  return text + " (" + fit.gpu.name + ")\n";
}

std::string what_binds(const Fit& fit, const Amounts& amounts) {
  const auto binding = binding_of(fit);
  if (!binding) return "";
  const Report& report = *fit.at_beyond;
  std::string text = fmt::format("With {} {} ", fit.what, *fit.beyond);
  const auto needs = [&](Bytes bytes, const char* purpose) {
    text +=
        fmt::format("the job needs {}{}, {} too much.", amounts(bytes), purpose, amounts(bytes - report.gpu.memory));
  };
  if (binding->book == "active") {
    needs(report.peak.active, " for tensors alone");
  } else if (binding->book == "reserved") {
    needs(report.peak.reserved, " for the allocator's segments alone");
  } else if (binding->book == "device") {
    needs(report.peak.device, "");
  } else {
    text += report.oom ? "memory runs out, although no book exceeds the card if it is larger."
                       : fmt::format("less than the reserve of {} is left.", amounts(report.verdict.reserve));
  }
  text += " Peak: " + peak_moment(report.peak) + ".";
  if (!binding->category.empty()) {
    text += fmt::format(fmt::runtime(fit.at_limit ? " Largest increase: {}, +{}." : " Largest part: {}, {}."),
                        binding->category, amounts(binding->category_bytes));
  }
  return "  " + wrapped(text, kLineWidth - 2, "  ") + "\n";
}

std::string side_by_side(const Fit& fit, const Amounts& amounts) {
  Table table({{fit.what, Align::kRight},
               {"verdict"},
               {"active", Align::kRight},
               {"reserved", Align::kRight},
               {"device", Align::kRight},
               {"headroom", Align::kRight},
               {"peak"}});
  const auto add = [&](const std::optional<std::int64_t>& value, const std::optional<Report>& report) {
    if (!value || !report) return;
    table.add({std::to_string(*value), verdict_words(report->verdict), amounts(report->peak.active),
               amounts(report->peak.reserved), amounts(report->peak.device), spare_words(report->verdict, amounts),
               peak_moment(report->peak)});
  };
  add(fit.limit, fit.at_limit);
  add(fit.beyond, fit.at_beyond);
  return table.empty() ? "" : "\n" + table.render();
}

std::string tried(const Fit& fit) {
  if (fit.probes.empty()) return "";
  std::vector<std::string> probes;
  for (const FitProbe& probe : fit.probes)
    probes.push_back(fmt::format("{} {}", probe.value, probe.fits ? "fits" : "does not"));
  return "\n  " + wrapped(fmt::format("Tried: {}", fmt::join(probes, ", ")), kLineWidth - 2, "  ") + "\n";
}

}  // namespace

std::optional<FitBinding> binding_of(const Fit& fit) {
  if (!fit.beyond || !fit.at_beyond) return std::nullopt;
  const Peak& peak = fit.at_beyond->peak;
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

std::string to_text(const Fit& fit, const TextOptions& options) {
  const Amounts amounts(options.unit);
  std::string text = headline(fit, amounts, options.colour);
  if (options.quiet) return text;
  text += what_binds(fit, amounts);
  if (fit.at_limit || fit.at_beyond) text += subject_lines(fit.at_limit ? *fit.at_limit : *fit.at_beyond);
  text += side_by_side(fit, amounts) + tried(fit);
  if (!fit.note.empty())
    text += "\n" + paint("note:", Ink::kWarning, options.colour) + " " + wrapped(fit.note, 114, "  ") + "\n";
  return text;
}

}  // namespace plimsoll::report
