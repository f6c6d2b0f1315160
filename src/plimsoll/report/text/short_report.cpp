#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "plimsoll/report/text/sections.h"
#include "plimsoll/report/verdict.h"

namespace plimsoll::report {
namespace {

constexpr std::size_t kWidth = 80;
constexpr std::size_t kMostLines = 20;
constexpr std::size_t kFewestBars = 4;

/// A part of the card, or of the memory that the job needs.
struct Part {
  std::string name;
  Bytes bytes = 0;
};

std::string indented(const std::string& text) { return "  " + wrapped(text, kWidth - 2, "  ") + "\n"; }

std::size_t lines_in(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

/// The largest part first. Parts beyond `most` become one.
std::vector<Part> parts_of(const Report& report, std::size_t most) {
  const Peak& peak = report.peak;
  std::vector<Part> parts;
  for (const CategoryBytes& entry : peak.categories) parts.push_back({entry.category, entry.bytes});
  if (parts.empty() && peak.active > 0) parts.push_back({"tensors", peak.active});
  const Bytes segments = std::max(peak.device_parts.segments, peak.active);
  parts.push_back({"unused cache", segments - peak.active});
  parts.push_back({"context, NCCL, handles", peak.device_parts.estimated()});
  if (peak.device < report.gpu.memory) parts.push_back({"free", report.gpu.memory - peak.device});
  std::erase_if(parts, [](const Part& part) { return part.bytes == 0; });
  const auto is_larger = [](const Part& a, const Part& b) { return a.bytes > b.bytes; };
  std::stable_sort(parts.begin(), parts.end(), is_larger);
  if (parts.size() <= most) return parts;
  Part rest{std::to_string(parts.size() - most + 1) + " smaller parts", 0};
  for (std::size_t i = most - 1; i < parts.size(); ++i) rest.bytes += parts[i].bytes;
  parts.resize(most - 1);
  parts.push_back(rest);
  return parts;
}

/// `part` of `whole` as a bar with at most `width` characters.
std::string bar(Bytes part, Bytes whole, std::size_t width, bool unicode) {
  const double length = static_cast<double>(part) / static_cast<double>(whole) * static_cast<double>(width);
  if (!unicode) return std::string(std::max<std::size_t>(1, static_cast<std::size_t>(length + 0.5)), '#');
  static const std::array<const char*, 8> kEighths{"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const auto eighths = std::max<std::size_t>(1, static_cast<std::size_t>(length * 8 + 0.5));
  std::string text;
  for (std::size_t i = 0; i < eighths / 8; ++i) text += "█";
  return text + kEighths[eighths % 8];
}

std::string bars(const Report& report, const TextOptions& options, std::size_t most) {
  const Amounts amounts(options.unit);
  const std::vector<Part> parts = parts_of(report, most);
  if (parts.empty()) return "";
  std::size_t name_width = 0;
  std::size_t amount_width = 0;
  for (const Part& part : parts) {
    name_width = std::max(name_width, width_of(part.name));
    amount_width = std::max(amount_width, width_of(amounts(part.bytes)));
  }
  const std::size_t bar_width = kWidth - std::min(kWidth - 10, 6 + name_width + amount_width);
  std::string text;
  for (const Part& part : parts) {
    const std::string amount = amounts(part.bytes);
    text += "  " + part.name +
            std::string(name_width - width_of(part.name) + 2 + amount_width - width_of(amount), ' ') + amount + "  " +
            bar(part.bytes, parts.front().bytes, bar_width, options.unicode) + "\n";
  }
  return text;
}

std::string memory_failure(const Report& report, const Amounts& amounts) {
  const OutOfMemory& oom = *report.oom;
  const std::string line = oom.where.line ? fmt::format(":{}", *oom.where.line) : "";
  return indented(fmt::format(
      "Memory ran out{}, {}: {} active, {} reserved.", oom.where.file.empty() ? "" : " at " + oom.where.file + line,
      moment(oom.step, oom.phase, "outside of the steps"), amounts(oom.active), amounts(oom.reserved)));
}

std::string warnings(const Report& report, Colour colour) {
  const auto warned = [&](const char* word, const std::string& text) {
    return paint(word, Ink::kWarning, colour) + " " + wrapped(text, kWidth - 9, "  ") + "\n";
  };
  std::string text;
  if (const PlannedJob* job = report.planned()) {
    for (const std::string& note : job->notes) text += warned("note:", note);
    return text;
  }
  const ScriptRun& run = *report.script();
  if (!run.defects.empty()) text += warned("warning:", "part of this report is missing: " + first_line(run.defects[0]));
  const auto decided = std::count_if(run.read_back_lines.begin(), run.read_back_lines.end(),
                                     [](const ReadBack& entry) { return entry.decided_shape; });
  if (decided > 0) {
    text += warned("warning:", "values read from the device (zeros) decided shapes; --full lists the lines");
  }
  if (!run.unpretended.empty()) {
    text += warned("warning:", "the script called functions that are not implemented; --full lists them");
  }
  return text;
}

}  // namespace

std::string short_text(const Report& report, const TextOptions& options) {
  const Amounts amounts(options.unit);
  std::string first = verdict_line(report, amounts, options.colour);
  if (report.oom) {
    first += report.planned() != nullptr ? indented(exceeding_book(report, amounts)) : memory_failure(report, amounts);
  }
  if (report.verdict.estimated > 0) {
    first +=
        indented(amounts(report.verdict.estimated) + " of this is an estimate: CUDA context, NCCL, library handles.");
  }
  first += indented(subject_line(report)) + "\n";

  std::string last = "\n" + indented("Peak: " + peak_moment_in_full(report) + ".");
  if (!report.is_attributed() && !report.attribution.empty()) last += indented(report.attribution);
  last += warnings(report, options.colour);
  last += report.planned() != nullptr ? "More: --full (all tables), plimsoll explain (causes, savings), --json FILE\n"
                                      : "More: --full (all tables), --explain (causes of the peak), --json FILE\n";
  const std::size_t used = lines_in(first) + lines_in(last);
  return first + bars(report, options, std::max(kFewestBars, kMostLines - std::min(used, kMostLines))) + last;
}

}  // namespace plimsoll::report
