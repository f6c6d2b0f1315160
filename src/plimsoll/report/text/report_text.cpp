#include <fmt/format.h>

#include <algorithm>

#include "plimsoll/report/text/sections.h"
#include "plimsoll/report/verdict.h"

namespace plimsoll::report {
namespace {

std::string code_excerpt(const CodeLine& where) { return excerpt(where.code, 80); }

std::string place(const CodeLine& where) {
  if (where.file.empty()) return "(not from a line of Python)";
  std::string text = where.file + (where.line ? ":" + std::to_string(*where.line) : "");
  return where.function.empty() ? text : text + " " + where.function;
}

/// The tables of a report, with its options.
class FullReport {
 public:
  FullReport(const Report& report, const TextOptions& options)
      : report_(report), options_(options), amounts_(options.unit) {}

  std::string text() const {
    std::string text = verdict_line(report_, amounts_, options_.colour);
    if (options_.quiet) return text;
    const ScriptRun* run = report_.script();
    if (run != nullptr && run->processes == 0) return text;
    if (!options_.full) return short_text(report_, options_);
    if (run == nullptr) text += why_it_does_not_fit(report_, amounts_);
    text += subject_lines(report_) + "\n" + books() + peak() + step_table(step_rows(report_), amounts_) +
            module_table(report_.modules, report_.peak.categories, options_.depth, amounts_);
    if (options_.explain) text += causes();
    return text + (run != nullptr ? of_script(*run) : of_job(*report_.planned()));
  }

 private:
  std::string warned(const std::string& word, const std::string& text) const {
    return fmt::format("\n{} {}\n", paint(word, Ink::kWarning, options_.colour), text);
  }

  std::string books() const {
    std::string text = books_table(report_.peak, report_.gpu.memory, amounts_);
    if (report_.script() == nullptr) return text;
    for (const OtherDevice& other : report_.script()->other_devices) {
      text +=
          fmt::format("  The script used device {} too: {} reserved.\n", other.device, amounts_(other.reserved_peak));
    }
    return text;
  }

  std::string peak() const {
    const std::string text = peak_by_category(report_.peak, peak_moment_in_full(report_), amounts_);
    if (report_.is_attributed() || report_.attribution.empty()) return text;
    return text + "  " + wrapped(report_.attribution, kLineWidth - 2, "  ") + "\n";
  }

  std::string causes() const {
    const std::string list = cause_list(report_.causes, report_.peak.active, peak_moment_in_full(report_), amounts_);
    return list.empty() ? "\nThe peak, cause by cause: not known\n" : list;
  }

  std::string of_job(const PlannedJob& job) const {
    std::string text;
    if (job.host > 0) {  // Else nothing is offloaded.
      const std::string pinned =
          report_.host_pinned > 0 ? fmt::format(", {} of it pinned", amounts_(report_.host_pinned)) : "";
      text += fmt::format("\nHost memory: {} at its peak{}\n", amounts_(job.host), pinned);
    }
    for (const std::string& note : job.notes) text += warned("note:", wrapped(note, 114, "  "));
    return text;
  }

  std::string of_script(const ScriptRun& run) const {
    std::string text = report_.oom ? memory_failure(run, *report_.oom) : "";
    if (!report_.oom && !run.top.empty()) {
      text += "\nLargest live allocations at the peak, by line of code\n" + allocations(run.top, run.top_total);
    }
    text += read_backs(run);
    if (report_.host_pinned > 0) {
      text += fmt::format("\nPinned host memory: {} at its peak\n", amounts_(report_.host_pinned));
    }
    if (run.ooms_handled > 0) {
      text += fmt::format("\nThe script caught {}\n", counted(run.ooms_handled, "out-of-memory error"));
    }
    for (const std::string& defect : run.defects) {
      text += warned("warning:", "part of this report is missing: " + first_line(defect));
    }
    if (run.unpretended.empty()) return text;
    const std::string names = fmt::format("{}", fmt::join(run.unpretended, " "));
    return text + warned("warning:", "the script called functions that are not simulated yet: " + names);
  }

  std::string allocations(const std::vector<LiveAllocations>& live, Bytes total) const {
    Table table({{"bytes", Align::kRight}, {"share", Align::kRight}, {"count", Align::kRight}, {"line"}, {"code"}});
    for (std::size_t i = 0; i < std::min(options_.top, live.size()); ++i) {
      const LiveAllocations& entry = live[i];
      table.add({amounts_(entry.bytes), share(entry.bytes, total), std::to_string(entry.count), place(entry.where),
                 code_excerpt(entry.where)});
    }
    return table.render();
  }

  std::string memory_failure(const ScriptRun& run, const OutOfMemory& oom) const {
    const std::string outside =
        run.finished_steps == 0 ? "before the first step" : "after step " + std::to_string(run.finished_steps - 1);
    const DeviceParts parts = oom.device_parts.value_or(DeviceParts{});
    std::string text = fmt::format(
        "\nWhere memory ran out\n  {} requested, {}{}, at {}\n{}"
        "  {} active, {} reserved, {} free on the device\n"
        "  The device held {} of segments, {} of context, {} of NCCL, {} of handles\n",
        amounts_(oom.requested), oom.step ? "in " : "", moment(oom.step, oom.phase, outside), place(oom.where),
        oom.where.code.empty() ? "" : "    " + oom.where.code + "\n", amounts_(oom.active), amounts_(oom.reserved),
        amounts_(oom.device_free), amounts_(parts.segments), amounts_(parts.context), amounts_(parts.nccl),
        amounts_(parts.handles));
    if (!oom.alive.empty()) text += "  Live allocations, by line of code\n" + allocations(oom.alive, oom.active);
    return text;
  }

  std::string read_backs(const ScriptRun& run) const {
    if (run.read_backs == 0) return "";
    Table table({{"count", Align::kRight}, {"bytes", Align::kRight}, {"line"}, {"op"}, {"code"}});
    std::string warnings;
    for (std::size_t i = 0; i < run.read_back_lines.size(); ++i) {
      const ReadBack& entry = run.read_back_lines[i];
      if (i < options_.top) {
        table.add({std::to_string(entry.count), amounts_(entry.bytes), place(entry.where), entry.op,
                   code_excerpt(entry.where)});
      }
      if (!entry.decided_shape) continue;
      warnings +=
          fmt::format("  {} a value read at {}{} decided a shape; the memory after it may differ on a real GPU\n",
                      paint("warning:", Ink::kWarning, options_.colour), place(entry.where),
                      entry.op.empty() ? "" : " (" + entry.op + ")");
    }
    return fmt::format("\n{} from the device gave zeros\n{}{}", counted(run.read_backs, "value read-back"),
                       table.empty() ? "" : table.render(), warnings);
  }

  const Report& report_;
  const TextOptions& options_;
  Amounts amounts_;
};

}  // namespace

std::string to_text(const Report& report, const TextOptions& options) { return FullReport(report, options).text(); }

}  // namespace plimsoll::report
