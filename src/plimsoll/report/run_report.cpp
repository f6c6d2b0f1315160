#include "plimsoll/report/run_report.h"

#include <algorithm>
#include <cstring>

#include "plimsoll/report/text/amounts.h"
#include "plimsoll/report/text/causes.h"
#include "plimsoll/report/text/module_table.h"
#include "plimsoll/report/text/peak_tables.h"
#include "plimsoll/report/text/step_rows.h"

namespace plimsoll::report {
namespace {

/// A line of source, short enough for a table. The whole one is in the JSON.
std::string code_excerpt(const std::string& code) {
  constexpr std::size_t kLongest = 80;
  if (code.size() <= kLongest) return code;
  std::size_t end = kLongest - 3;
  while (end > 0 && (static_cast<unsigned char>(code[end]) & 0xC0U) == 0x80U) --end;  // not inside a character
  return code.substr(0, end) + "...";
}

std::string place(const CodeLine& where) {
  if (where.file.empty()) return "(not from a line of Python)";
  std::string text = where.file + (where.line > 0 ? ":" + std::to_string(where.line) : "");
  return where.function.empty() ? text : text + " " + where.function;
}

std::string how_it_ended(const RunReport& report) {
  if (report.signal)
    return "signal " + std::to_string(*report.signal) + " (" + strsignal(*report.signal) + ") ended it";
  if (report.error) {
    return "it failed with " + report.error->type +
           (report.error->message.empty() ? "" : ": " + first_line(report.error->message));
  }
  return report.exit_code == 0 ? "" : "it ended with exit code " + std::to_string(report.exit_code);
}

std::string short_by(const OutOfMemory& oom, Bytes card) {
  if (oom.device_total < card) {
    return ", " + format_bytes(oom.device_free) + " free of the " + format_bytes(oom.device_total) +
           " that the script allows itself";
  }
  if (oom.requested <= oom.device_free) {
    return ", " + format_bytes(oom.device_free) + " free of " + format_bytes(oom.device_total) +
           ": too little for the pieces in which memory is taken";
  }
  return ", " + format_bytes(oom.device_free) + " free of " + format_bytes(oom.device_total) + ": " +
         format_bytes(oom.requested - oom.device_free) + " short on the device book";
}

std::string verdict(const RunReport& report, Colour colour) {
  const std::string ended = how_it_ended(report);
  if (report.out_of_memory()) {
    // A vendor library or the driver says only that memory ran out, not how much it asked for.
    const std::string why = report.oom->requested == 0 ? first_line(report.oom->message)
                                                       : format_bytes(report.oom->requested) + " asked for" +
                                                             short_by(*report.oom, report.gpu.memory);
    return paint("does not fit:", Ink::kBad, colour) + " " + why + " (" + report.gpu.name + ")\n";
  }
  if (!report.fits()) {
    const std::string what =
        report.processes > 0 ? "the script died between two steps" : "the script left no record of a GPU";
    return paint("no verdict:", Ink::kWarning, colour) + " " + what + (ended.empty() ? "" : "; " + ended) + "\n";
  }
  if (report.processes == 0) return paint("fits:", Ink::kGood, colour) + " the script used no GPU\n";
  const Bytes spare = report.gpu.memory - std::min(report.gpu.memory, report.peak.device);
  const std::string numbers = format_bytes(report.peak.device) + " of " + format_bytes(report.gpu.memory) +
                              " on the device book, " + format_bytes(spare) + " to spare (" + report.gpu.name + ")";
  if (ended.empty() && report.alloc_retries > 0) {
    return paint("fits, barely:", Ink::kWarning, colour) + " " + numbers +
           "; the caching allocator had to empty its cache " + counted(report.alloc_retries, "time") +
           " to find room, which stalls the GPU\n";
  }
  if (ended.empty()) return paint("fits:", Ink::kGood, colour) + " " + numbers + "\n";
  return paint("fits as far as it ran:", Ink::kWarning, colour) + " " + numbers + "; " + ended + "\n";
}

std::string subject(const RunReport& report) {
  std::string text = "  " + (report.script.empty() ? std::string("script") : report.script) + ", rank " +
                     std::to_string(report.rank) + " of " + std::to_string(report.world_size);
  if (!report.torch.empty()) text += ", torch " + report.torch;
  if (!report.python.empty()) text += ", Python " + report.python;
  text += ", " + counted(report.finished_steps, "finished step");
  if (report.stopped_after_steps) text += " (stopped then, as asked)";
  text += ", " + decimal(report.seconds, "%.1f s") + "\n";
  if (report.processes > 1) {
    text += "  " + std::to_string(report.processes) + " processes used a GPU; this is the one with the highest peak\n";
  }
  if (!report.complete)
    text += "  the record ends with the last finished step: the process could not write its last one\n";
  return text;
}

std::string books(const RunReport& report) {
  std::string text = books_table(report.peak, report.gpu.memory, Amounts());
  for (const OtherDevice& other : report.other_devices) {
    text += "  Device " + std::to_string(other.device) + " was used too: " + format_bytes(other.reserved_peak) +
            " reserved.\n";
  }
  return text;
}

/// The record says of a peak in no step that it was in none. Before the first and after the last one have peaks of
/// their own.
bool is_after_steps(const RunReport& report) {
  const auto reached = [&](const std::optional<StepPeaks>& part) {
    return part && part->active_peak == report.peak.active;
  };
  return !report.peak.step && reached(report.after_steps) && !reached(report.before_steps);
}

/// Without fully_shard no module is ever named, which says nothing of where the peak was.
std::string peak_moment_of(const RunReport& report) {
  if (is_after_steps(report)) return moment(report.peak.step, report.peak.phase, "after the last step");
  const bool sharded = std::any_of(report.modules.begin(), report.modules.end(),
                                   [](const ModuleRow& module) { return module.fsdp_unit; });
  return peak_moment_in_full(report.peak, sharded ? "in the model's own layers or the loss" : "");
}

std::string peak(const RunReport& report) {
  const std::string text = peak_by_category(report.peak, peak_moment_of(report), Amounts());
  if (report.is_attributed() || report.attribution.empty()) return text;
  return text + "  " + wrapped(report.attribution, 118, "  ") + "\n";
}

std::string causes(const RunReport& report, const TextOptions& options) {
  if (!options.explain) return "";
  const std::string list = cause_list(report.causes, report.peak.active, peak_moment_of(report), Amounts());
  return list.empty() ? "\nThe peak, cause by cause: not known\n" : list;
}

std::string allocations(const std::vector<LiveAllocations>& live, Bytes total, std::size_t limit) {
  Table table({{"bytes", Align::kRight}, {"share", Align::kRight}, {"count", Align::kRight}, {"line"}, {"code"}});
  for (std::size_t i = 0; i < std::min(limit, live.size()); ++i) {
    const LiveAllocations& entry = live[i];
    table.add({format_bytes(entry.bytes), share(entry.bytes, total), std::to_string(entry.count), place(entry.where),
               code_excerpt(entry.where.code)});
  }
  return table.render();
}

std::string largest(const RunReport& report, std::size_t limit) {
  if (report.top.empty()) return "";
  return "\nLargest live allocations at the peak, by line of code\n" + allocations(report.top, report.top_total, limit);
}

std::string memory_failure(const RunReport& report, const TextOptions& options) {
  if (!report.oom) return "";
  const OutOfMemory& oom = *report.oom;
  const std::string outside =
      report.finished_steps == 0 ? "before the first step" : "after step " + std::to_string(report.finished_steps - 1);
  std::string text = "\nWhere memory ran out\n";
  text += "  " + format_bytes(oom.requested) + " asked for, " + (oom.step ? "in " : "") +
          moment(oom.step, oom.phase, outside) + ", at " + place(oom.where) + "\n";
  if (!oom.where.code.empty()) text += "    " + oom.where.code + "\n";
  text += "  " + format_bytes(oom.active) + " active, " + format_bytes(oom.reserved) + " reserved, " +
          format_bytes(oom.device_free) + " free on the device\n";
  const DeviceParts& parts = oom.device_parts;
  text += "  The device held " + format_bytes(parts.segments) + " of segments, " + format_bytes(parts.context) +
          " of context, " + format_bytes(parts.nccl) + " of NCCL, " + format_bytes(parts.handles) + " of handles\n";
  if (!oom.alive.empty()) {
    text += "  What was alive, by line of code\n" + allocations(oom.alive, oom.active, options.top);
  }
  return text;
}

std::string read_backs(const RunReport& report, const TextOptions& options) {
  if (report.read_backs == 0) return "";
  std::string text = "\n" + counted(report.read_backs, "value read-back") + " from the device gave zeros\n";
  Table table({{"count", Align::kRight}, {"bytes", Align::kRight}, {"line"}, {"op"}, {"code"}});
  std::vector<std::string> warnings;
  for (const ReadBack& entry : report.read_back_lines) {
    if (entry.decided_shape) {
      warnings.push_back(place(entry.where) + (entry.op.empty() ? "" : " (" + entry.op + ")"));
    }
  }
  for (std::size_t i = 0; i < std::min(options.top, report.read_back_lines.size()); ++i) {
    const ReadBack& entry = report.read_back_lines[i];
    table.add({std::to_string(entry.count), format_bytes(entry.bytes), place(entry.where), entry.op,
               code_excerpt(entry.where.code)});
  }
  if (!table.empty()) text += table.render();
  for (const std::string& warning : warnings) {
    text += "  " + paint("warning:", Ink::kWarning, options.colour) + " a value read at " + warning +
            " decided a shape; the memory after it may differ on a real GPU\n";
  }
  return text;
}

std::string notes(const RunReport& report, Colour colour) {
  std::string text;
  if (report.host_pinned > 0) text += "\nPinned host memory: " + format_bytes(report.host_pinned) + " at its peak\n";
  if (report.ooms_handled > 0) {
    text += "\n" + counted(report.ooms_handled, "out-of-memory error") + " caught by the script\n";
  }
  for (const std::string& defect : report.defects) {
    text += "\n" + paint("warning:", Ink::kWarning, colour) + " part of this report is missing: " + first_line(defect) +
            "\n";
  }
  if (!report.unpretended.empty()) {
    text += "\n" + paint("warning:", Ink::kWarning, colour) + " called, and not pretended yet:";
    for (const std::string& name : report.unpretended) text += " " + name;
    text += "\n";
  }
  return text;
}

}  // namespace

std::optional<bool> RunReport::fits() const {
  if (out_of_memory()) return false;
  if (!recorded || (processes == 0 && exit_code != 0)) return std::nullopt;
  if (!complete && exit_code != 0) return std::nullopt;  // it may have died of anything
  return true;
}

std::string to_text(const RunReport& report, const TextOptions& options) {
  std::string text = verdict(report, options.colour);
  if (report.processes == 0) return text;
  text += subject(report) + "\n" + books(report) + peak(report) + step_table(step_rows(report), Amounts()) +
          module_table(report.modules, report.peak.categories, options.depth, Amounts()) + causes(report, options) +
          memory_failure(report, options);
  if (!report.out_of_memory()) text += largest(report, options.top);
  return text + read_backs(report, options) + notes(report, options.colour);
}

}  // namespace plimsoll::report
