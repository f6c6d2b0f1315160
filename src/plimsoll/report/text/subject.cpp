#include <fmt/format.h>

#include <algorithm>

#include "plimsoll/report/text/sections.h"

namespace plimsoll::report {
namespace {

std::string text_of(const PlannedJob& job, std::string_view name) {
  const JobValue value = job_value(job.job, name);
  return std::holds_alternative<std::nullptr_t>(value) ? "" : shown(value);
}

std::int64_t whole_of(const PlannedJob& job, std::string_view name, std::int64_t otherwise) {
  const JobValue value = job_value(job.job, name);
  const auto* whole = std::get_if<std::int64_t>(&value);
  return whole == nullptr ? otherwise : *whole;
}

/// Adds a part of a list, if it is known.
auto adds_to(std::string& text) {
  return [&text](const std::string& what, const std::string& value) {
    if (!value.empty()) text += ", " + what + value;
  };
}

std::string gpus(const PlannedJob& job) {
  const std::int64_t count = whole_of(job, "gpus", 0);
  if (count <= 0) return "";
  const std::int64_t replicas = whole_of(job, "replicas", 1);
  const std::string text = counted(static_cast<std::uint64_t>(count), "GPU");
  return replicas > 1 ? fmt::format("{} ({} replicas of {})", text, replicas, count / replicas) : text;
}

std::string precision(const PlannedJob& job) {
  const std::string compute = text_of(job, "param_dtype");
  if (compute.empty()) return "";
  const std::string reduce = text_of(job, "reduce_dtype");
  const std::string master = text_of(job, "master_dtype");
  std::string text = "compute " + compute;
  if (!reduce.empty() && reduce != compute) text += ", gradient reduction " + reduce;
  if (!master.empty() && master != compute) text += ", weights " + master;
  return text;
}

std::string lines_of_job(const Report& report, const PlannedJob& job) {
  const Model& model = job.model;
  std::string text = fmt::format("{}: {} parameters", model.name, parameter_count(model.parameters));
  if (model.active_parameters != 0 && model.active_parameters != model.parameters) {
    text += fmt::format(" ({} for each token)", parameter_count(model.active_parameters));
  }
  const auto add = adds_to(text);
  add("", gpus(job));
  add("batch ", text_of(job, "batch"));
  add("sequence ", text_of(job, "seq_len"));
  const std::int64_t accumulated = whole_of(job, "grad_accum", 1);
  if (accumulated > 1) add("gradients of ", std::to_string(accumulated) + " batches accumulated");
  add("", precision(job));
  add("checkpoint ", text_of(job, "checkpoint"));
  const std::string form = text_of(job, "optimizer_impl");
  add("", text_of(job, "optimizer") + (form.empty() ? "" : " (" + form + ")"));
  const std::string offload = text_of(job, "offload");
  if (offload != "none") add("offload ", offload);
  add("torch ", report.torch);
  add("", decimal(report.seconds, "%.1f s"));
  return "  " + wrapped(text, kLineWidth - 2, "  ") + "\n";
}

std::string script_and_rank(const ScriptRun& run) {
  return fmt::format("{}, rank {} of {}", run.script.empty() ? "script" : run.script, run.rank, run.world_size);
}

std::string lines_of_script(const Report& report, const ScriptRun& run) {
  std::string text = "  " + script_and_rank(run);
  const auto add = adds_to(text);
  add("torch ", report.torch);
  add("Python ", run.python);
  add("", counted(run.finished_steps, "finished step"));
  if (run.stopped_after_steps) text += " (stopped then, as requested)";
  add("", decimal(report.seconds, "%.1f s") + "\n");
  if (run.processes > 1) {
    text += fmt::format("  {} processes used a GPU; this is the one with the highest peak\n", run.processes);
  }
  if (!run.complete)
    text += "  the record ends with the last finished step: the process could not write its last one\n";
  return text;
}

/// A peak outside of the steps has no step number. The peaks before the first and after the last step tell which it is.
bool is_after_steps(const Report& report) {
  const auto reached = [&](const std::optional<StepPeaks>& part) {
    return part && part->active_peak == report.peak.active;
  };
  return !report.peak.step && reached(report.after_steps) && !reached(report.before_steps);
}

/// The place of a peak that no module names. Without fully_shard no module is ever named, so nothing is known.
std::string place_without_module(const Report& report) {
  if (report.planned() != nullptr) return "in the model's own layers (embedding, norm, head) or the loss";
  const bool is_sharded = std::any_of(report.modules.begin(), report.modules.end(),
                                      [](const ModuleRow& module) { return module.fsdp_unit; });
  return is_sharded ? "in the model's own layers or the loss" : "";
}

}  // namespace

std::string subject_lines(const Report& report) {
  const ScriptRun* run = report.script();
  return run != nullptr ? lines_of_script(report, *run) : lines_of_job(report, *report.planned());
}

std::string subject_line(const Report& report) {
  if (const ScriptRun* run = report.script()) {
    std::string text = script_and_rank(*run) + ", " + counted(run->finished_steps, "finished step");
    adds_to(text)("torch ", report.torch);
    return text;
  }
  const PlannedJob& job = *report.planned();
  std::string text = job.model.name;
  const auto add = adds_to(text);
  add("", gpus(job));
  add("batch ", text_of(job, "batch"));
  add("sequence ", text_of(job, "seq_len"));
  add("checkpoint ", text_of(job, "checkpoint"));
  add("", text_of(job, "optimizer"));
  return text;
}

std::string peak_moment_in_full(const Report& report) {
  const Peak& peak = report.peak;
  if (is_after_steps(report)) return moment(peak.step, peak.phase, "after the last step");
  std::string text = moment(peak.step, peak.phase);
  if (!peak.module.empty()) {
    text += ", module " + peak.module;
  } else if (peak.phase == "forward" || peak.phase == "backward") {
    const std::string place = place_without_module(report);
    if (!place.empty()) text += ", " + place;
  }
  return peak.stage.empty() ? text : text + " (" + peak.stage + ")";
}

}  // namespace plimsoll::report
