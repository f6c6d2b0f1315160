#include "plimsoll/report/text/report_text.h"

#include <algorithm>

#include "plimsoll/report/text/amounts.h"
#include "plimsoll/report/text/causes.h"
#include "plimsoll/report/text/module_table.h"
#include "plimsoll/report/text/peak_tables.h"
#include "plimsoll/report/text/short_report.h"
#include "plimsoll/report/text/step_rows.h"
#include "plimsoll/report/text/subject.h"
#include "plimsoll/report/verdict.h"

namespace plimsoll::report {
namespace {

/// A line of source, short enough for a table. The JSON has all of it.
std::string code_excerpt(const std::string& code) {
  constexpr std::size_t kLongest = 80;
  if (code.size() <= kLongest) return code;
  std::size_t end = kLongest - 3;
  while (end > 0 && (static_cast<unsigned char>(code[end]) & 0xC0U) == 0x80U) --end;  // not inside a character
  return code.substr(0, end) + "...";
}

std::string place(const CodeLine& where) {
  if (where.file.empty()) return "(not from a line of Python)";
  std::string text = where.file + (where.line ? ":" + std::to_string(*where.line) : "");
  return where.function.empty() ? text : text + " " + where.function;
}

std::string heading(const std::string& text, Colour colour) { return "\n" + paint(text, Ink::kWarning, colour) + " "; }

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
    text += subject_lines(report_) + "\n" + books() + peak() +
            step_table(step_rows(report_.before_steps, report_.steps, report_.after_steps), amounts_) +
            module_table(report_.modules, report_.peak.categories, options_.depth, amounts_);
    if (options_.explain) text += causes();
    return text + (run != nullptr ? of_script(*run) : of_job(*report_.planned()));
  }

 private:
  std::string books() const {
    std::string text = books_table(report_.peak, report_.gpu.memory, amounts_);
    if (report_.script() == nullptr) return text;
    for (const OtherDevice& other : report_.script()->other_devices) {
      text += "  The script used device " + std::to_string(other.device) + " too: " + amounts_(other.reserved_peak) +
              " reserved.\n";
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
      text += "\nHost memory: " + amounts_(job.host) + " at its peak";
      if (report_.host_pinned > 0) text += ", " + amounts_(report_.host_pinned) + " of it pinned";
      text += "\n";
    }
    for (const std::string& note : job.notes)
      text += heading("note:", options_.colour) + wrapped(note, 114, "  ") + "\n";
    return text;
  }

  std::string of_script(const ScriptRun& run) const {
    std::string text = report_.oom ? memory_failure(run, *report_.oom) : "";
    if (!report_.oom && !run.top.empty()) {
      text += "\nLargest live allocations at the peak, by line of code\n" + allocations(run.top, run.top_total);
    }
    text += read_backs(run);
    if (report_.host_pinned > 0) text += "\nPinned host memory: " + amounts_(report_.host_pinned) + " at its peak\n";
    if (run.ooms_handled > 0) {
      text += "\nThe script caught " + counted(run.ooms_handled, "out-of-memory error") + "\n";
    }
    for (const std::string& defect : run.defects) {
      text += heading("warning:", options_.colour) + "part of this report is missing: " + first_line(defect) + "\n";
    }
    if (!run.unpretended.empty()) {
      text += heading("warning:", options_.colour) + "the script called functions that are not simulated yet:";
      for (const std::string& name : run.unpretended) text += " " + name;
      text += "\n";
    }
    return text;
  }

  std::string allocations(const std::vector<LiveAllocations>& live, Bytes total) const {
    Table table({{"bytes", Align::kRight}, {"share", Align::kRight}, {"count", Align::kRight}, {"line"}, {"code"}});
    for (std::size_t i = 0; i < std::min(options_.top, live.size()); ++i) {
      const LiveAllocations& entry = live[i];
      table.add({amounts_(entry.bytes), share(entry.bytes, total), std::to_string(entry.count), place(entry.where),
                 code_excerpt(entry.where.code)});
    }
    return table.render();
  }

  std::string memory_failure(const ScriptRun& run, const OutOfMemory& oom) const {
    const std::string outside =
        run.finished_steps == 0 ? "before the first step" : "after step " + std::to_string(run.finished_steps - 1);
    std::string text = "\nWhere memory ran out\n  " + amounts_(oom.requested) + " requested, " +
                       (oom.step ? "in " : "") + moment(oom.step, oom.phase, outside) + ", at " + place(oom.where) +
                       "\n";
    if (!oom.where.code.empty()) text += "    " + oom.where.code + "\n";
    text += "  " + amounts_(oom.active) + " active, " + amounts_(oom.reserved) + " reserved, " +
            amounts_(oom.device_free) + " free on the device\n";
    const DeviceParts parts = oom.device_parts.value_or(DeviceParts{});
    text += "  The device held " + amounts_(parts.segments) + " of segments, " + amounts_(parts.context) +
            " of context, " + amounts_(parts.nccl) + " of NCCL, " + amounts_(parts.handles) + " of handles\n";
    if (!oom.alive.empty()) text += "  Live allocations, by line of code\n" + allocations(oom.alive, oom.active);
    return text;
  }

  std::string read_backs(const ScriptRun& run) const {
    if (run.read_backs == 0) return "";
    std::string text = "\n" + counted(run.read_backs, "value read-back") + " from the device gave zeros\n";
    Table table({{"count", Align::kRight}, {"bytes", Align::kRight}, {"line"}, {"op"}, {"code"}});
    std::string warnings;
    for (std::size_t i = 0; i < run.read_back_lines.size(); ++i) {
      const ReadBack& entry = run.read_back_lines[i];
      if (i < options_.top) {
        table.add({std::to_string(entry.count), amounts_(entry.bytes), place(entry.where), entry.op,
                   code_excerpt(entry.where.code)});
      }
      if (!entry.decided_shape) continue;
      warnings += "  " + paint("warning:", Ink::kWarning, options_.colour) + " a value read at " + place(entry.where) +
                  (entry.op.empty() ? "" : " (" + entry.op + ")") +
                  " decided a shape; the memory after it may differ on a real GPU\n";
    }
    return text + (table.empty() ? "" : table.render()) + warnings;
  }

  const Report& report_;
  const TextOptions& options_;
  Amounts amounts_;
};

}  // namespace

std::string to_text(const Report& report, const TextOptions& options) { return FullReport(report, options).text(); }

}  // namespace plimsoll::report
