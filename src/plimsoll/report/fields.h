#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "plimsoll/report/comparison.h"
#include "plimsoll/report/fit.h"
#include "plimsoll/report/report.h"
#include "plimsoll/report/sweep.h"
#include "plimsoll/report/text/sections.h"

/// The one list of fields of all documents, with their JSON names. `describe(visitor, value)` calls, in the order of
/// the document,
///
///     visitor.type("peak")                       the name of the type in the JSON Schema
///     visitor("active_bytes", value.active)      a field; or_null, named and as_list choose its form
///     visitor.constant("command", "plan")        a field that has one value
///     visitor.derived("sentence", …)             a field that is written, but not read
///
/// document.cpp has the visitors: they write, read, and make the schema. A field is added by one line here.
namespace plimsoll::report {

/// Of the documents that this plimsoll writes. CHANGELOG.md has the differences between versions.
inline constexpr std::int64_t kDocumentVersion = 2;

/// A value of type `U`, const or not.
template <class T, class U>
concept Is = std::is_same_v<std::remove_const_t<T>, U>;

/// Text or a list that is null if it is empty.
template <class T>
struct OrNull {
  T& value;
};
template <class T>
OrNull<T> or_null(T& value) {
  return {value};
}

/// An enumerator by its name.
template <class E, std::size_t N>
struct Named {
  E& value;
  const std::array<const char*, N>& names;
};
template <class E, std::size_t N>
Named<E, N> named(E& value, const std::array<const char*, N>& names) {
  return {value, names};
}

/// Names and bytes as a list of objects. Without this they are one object.
template <class T>
struct AsList {
  T& value;
};
template <class T>
AsList<T> as_list(T& value) {
  return {value};
}

inline constexpr std::array<const char*, 7> kOutcomeNames{
    "fits", "out of memory", "too little left", "script failed", "stopped", "no verdict", "not run"};
inline constexpr std::array<const char*, 2> kDirectionNames{"maximize", "minimize"};

template <class V>
void describe(V& v, Is<Verdict> auto& verdict) {
  v.type("verdict");
  v("outcome", named(verdict.outcome, kOutcomeNames));
  v("only_just", verdict.only_just);
  v("spare_bytes", verdict.spare);
  v("estimated_bytes", verdict.estimated);
  v("reserve_bytes", verdict.reserve);
  v("sentence", verdict.sentence);
}

template <class V>
void describe(V& v, Is<Gpu> auto& gpu) {
  v.type("gpu");
  v("name", gpu.name);
  v("device_name", gpu.device_name);
  v("memory_bytes", gpu.memory);
  v("compute_capability", gpu.compute_capability);
  v("multiprocessors", gpu.multiprocessors);
}

template <class V>
void describe(V& v, Is<DeviceParts> auto& parts) {
  v.type("device_parts");
  v("segments", parts.segments);
  v("context", parts.context);
  v("nccl", parts.nccl);
  v("handles", parts.handles);
}

template <class V>
void describe(V& v, Is<Peak> auto& peak) {
  v.type("peak");
  v("active_bytes", peak.active);
  v("allocated_bytes", peak.allocated);
  v("reserved_bytes", peak.reserved);
  v("device_bytes", peak.device);
  v("segments", peak.segments);
  v("step", peak.step);
  v("phase", or_null(peak.phase));
  v("module", or_null(peak.module));
  v("stage", or_null(peak.stage));
  v("categories", or_null(peak.categories));
  v("device_parts", peak.device_parts);
}

/// A part of the object that contains it.
template <class V>
void describe(V& v, Is<CodeLine> auto& where) {
  v("file", or_null(where.file));
  v("line", where.line);
  v("function", or_null(where.function));
  v("code", or_null(where.code));
}

template <class V>
void describe(V& v, Is<LiveAllocations> auto& live) {
  v.type("allocations");
  v("bytes", live.bytes);
  v("count", live.count);
  describe(v, live.where);
}

template <class V>
void describe(V& v, Is<OutOfMemory> auto& oom) {
  v.type("oom");
  v("requested_bytes", oom.requested);
  v("device_free_bytes", oom.device_free);
  v("device_total_bytes", oom.device_total);
  v("active_bytes", oom.active);
  v("reserved_bytes", oom.reserved);
  v("step", oom.step);
  v("phase", or_null(oom.phase));
  v("module", or_null(oom.module));
  describe(v, oom.where);
  v("message", oom.message);
  v("device_parts", oom.device_parts);
  v("top", oom.alive);
}

template <class V>
void describe(V& v, Is<PhasePeaks> auto& phase) {
  v.type("phase");
  v("active_peak_bytes", phase.active_peak);
  v("allocated_peak_bytes", phase.allocated_peak);
  v("reserved_peak_bytes", phase.reserved_peak);
  v("active_end_bytes", phase.active_end);
  v("reserved_end_bytes", phase.reserved_end);
}

template <class V>
void describe(V& v, Is<StepPeaks> auto& step) {
  v.type("step");
  v("step", step.step);
  v("active_peak_bytes", step.active_peak);
  v("allocated_peak_bytes", step.allocated_peak);
  v("reserved_peak_bytes", step.reserved_peak);
  v("phases", step.phases);
}

template <class V>
void describe(V& v, Is<ModuleRow> auto& module) {
  v.type("module");
  v("name", module.name);
  v("type", module.type);
  v("fsdp_unit", module.fsdp_unit);
  v("parameters", module.parameters);
  v("highest_bytes", module.highest);
  v("total_bytes", module.total);
  v("at_peak", module.at_peak);
}

template <class V>
void describe(V& v, Is<PeakCause> auto& cause) {
  v.type("cause");
  v("bytes", cause.bytes);
  v("category", cause.category);
  v("why", cause.why);
  v.derived("sentence", sentence(cause));
  v("owners", as_list(cause.owners));
  v("allocations", cause.allocations);
  v("one_per_shard", cause.one_per_shard);
}

template <class V>
void describe(V& v, Is<ReadBack> auto& entry) {
  v.type("read_back");
  v("count", entry.count);
  v("bytes", entry.bytes);
  v("op", or_null(entry.op));
  v("decided_shape", entry.decided_shape);
  describe(v, entry.where);
}

template <class V>
void describe(V& v, Is<ScriptError> auto& error) {
  v.type("error");
  v("type", error.type);
  v("message", error.message);
}

template <class V>
void describe(V& v, Is<OtherDevice> auto& other) {
  v.type("other_device");
  v("device", other.device);
  v("reserved_peak_bytes", other.reserved_peak);
}

template <class V>
void describe(V& v, Is<Model> auto& model) {
  v.type("model");
  v("name", model.name);
  v("family", model.family);
  v("parameters", model.parameters);
  v("active_parameters", model.active_parameters);
  v("blocks", model.blocks);
}

/// A part of the report.
template <class V>
void describe(V& v, Is<PlannedJob> auto& job) {
  v("model", job.model);
  v("job", job.job);
  v("notes", job.notes);
  v("host_bytes", job.host);
  v("ops", job.ops);
  v("planner_step_seconds", job.planner_step_seconds);
}

/// A part of the report.
template <class V>
void describe(V& v, Is<ScriptRun> auto& run) {
  v("script", or_null(run.script));
  v("python", or_null(run.python));
  v("gpus_per_node", run.gpus_per_node);
  v("world_size", run.world_size);
  v("rank", run.rank);
  v("processes", run.processes);
  v("device", run.device);
  v("complete", run.complete);
  v("finished_steps", run.finished_steps);
  v("stopped_after_steps", run.stopped_after_steps);
  v("error", run.error);
  v("exit_code", run.exit_code);
  v("signal", run.signal);
  v("ooms_handled", run.ooms_handled);
  v("top", run.top);
  v("top_total_bytes", run.top_total);
  v("read_backs", run.read_backs);
  v("read_back_lines", run.read_back_lines);
  v("unpretended", run.unpretended);
  v("defects", run.defects);
  v("other_devices", run.other_devices);
}

template <class V>
void describe(V& v, Is<Report> auto& report) {
  const char* const command = report.planned() != nullptr ? "plan" : "run";
  v.type(command);
  v.constant("version", kDocumentVersion);
  v.constant("command", command);
  v("fits", report.verdict.fits);
  v("verdict", report.verdict);
  v("gpu", report.gpu);
  v("torch", or_null(report.torch));
  std::visit([&](auto& subject) { describe(v, subject); }, report.subject);
  v("peak", report.peak);
  v("oom", report.oom);
  v("before_steps", report.before_steps);
  v("steps", report.steps);
  v("after_steps", report.after_steps);
  v("modules", or_null(report.modules));
  v("causes", or_null(report.causes));
  v("attribution", or_null(report.attribution));
  v("host_pinned_bytes", report.host_pinned);
  v("alloc_retries", report.alloc_retries);
  v("seconds", report.seconds);
}

// The other documents are only written.

template <class V>
void describe(V& v, const SweepLine& line) {
  v.type("sweep_row");
  static const Report kNotRun;
  const Report& report = line.result != nullptr ? *line.result : kNotRun;
  const auto if_run = [&](const auto& value) { return line.result != nullptr ? std::optional(value) : std::nullopt; };
  v("job", line.job);
  v("fits", report.verdict.fits);
  v("outcome", named(report.verdict.outcome, kOutcomeNames));
  v("active_bytes", if_run(report.peak.active));
  v("reserved_bytes", if_run(report.peak.reserved));
  v("device_bytes", if_run(report.peak.device));
  v("memory_bytes", if_run(report.gpu.memory));
  v("spare_bytes", report.verdict.spare);
  v("step", report.peak.step);
  v("phase", or_null(report.peak.phase));
  v("module", or_null(report.peak.module));
  v("alloc_retries", if_run(report.alloc_retries));
  v("error", or_null(line.error));
}

template <class V>
void describe(V& v, const Sweep& sweep) {
  v.type("sweep");
  v.constant("version", kDocumentVersion);
  v.constant("command", "sweep");
  v("model", sweep.model);
  v("gpu", sweep.gpu);
  v("axes", axes_of(sweep));
  v("rows", lines_of(sweep));
}

template <class V>
void describe(V& v, const FitProbe& probe) {
  v.type("fit_probe");
  v("value", probe.value);
  v("fits", probe.fits);
}

template <class V>
void describe(V& v, const FitBinding& binding) {
  v.type("fit_binding");
  v("book", or_null(binding.book));
  v("category", or_null(binding.category));
  v("category_bytes", binding.category_bytes);
  v("phase", or_null(binding.phase));
  v("module", or_null(binding.module));
}

template <class V>
void describe(V& v, const Fit& fit) {
  v.type("fit");
  v.constant("version", kDocumentVersion);
  v.constant("command", "fit");
  v("model", fit.model);
  v("gpu", fit.gpu);
  v("search", underscored(fit.what));
  v("direction", named(fit.direction, kDirectionNames));
  v("limit", fit.limit);
  v("at_limit", fit.at_limit);
  v("beyond", fit.beyond);
  v("at_beyond", fit.at_beyond);
  v("binds", binding_of(fit));
  v("probes", fit.probes);
  v("note", or_null(fit.note));
}

template <class V>
void describe(V& v, const BytesChange& change) {
  v.type("bytes_change");
  v("name", change.name);
  v("a_bytes", change.a);
  v("b_bytes", change.b);
  v("difference_bytes", change.difference());
}

template <class V>
void describe(V& v, const SettingChange& change) {
  v.type("setting_change");
  v("name", underscored(change.name));
  v("a", change.a);
  v("b", change.b);
}

template <class V>
void describe(V& v, const NamedReport& side) {
  v.type("compared_report");
  const std::string command = side.report.planned() != nullptr ? "plan" : "run";
  const std::string model = side.report.planned() != nullptr ? side.report.planned()->model.name : "";
  v("name", side.name);
  v("command", command);
  v("model", or_null(model));
  v("fits", side.report.verdict.fits);
  v("gpu", side.report.gpu);
}

template <class V>
void describe(V& v, const Comparison& comparison) {
  v.type("compare");
  v.constant("version", kDocumentVersion);
  v.constant("command", "compare");
  v("a", comparison.a);
  v("b", comparison.b);
  v("job", comparison.settings);
  v("books", comparison.books);
  v("categories", comparison.categories);
  v("phases", comparison.phases);
  v("modules", comparison.modules);
}

template <class V>
void describe(V& v, const Saving& saving) {
  v.type("change");
  v("change", saving.change);
  v("report", saving.result);
  v("error", or_null(saving.failure));
}

template <class V>
void describe(V& v, const Explanation& explanation) {
  v.type("explain");
  v.constant("version", kDocumentVersion);
  v.constant("command", "explain");
  v("report", explanation.report);
  v("changes", explanation.changes);
}

}  // namespace plimsoll::report
