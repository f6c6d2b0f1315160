#include "plimsoll/report/text/plan_subject.h"

#include "plimsoll/report/text/amounts.h"
#include "plimsoll/report/text/peak_tables.h"

namespace plimsoll::report {
namespace {

std::string text_of(const PlanReport& report, std::string_view name) {
  const JobValue value = job_value(report.job, name);
  return std::holds_alternative<std::nullptr_t>(value) ? "" : shown(value);
}

std::int64_t whole_of(const PlanReport& report, std::string_view name, std::int64_t otherwise) {
  const JobValue value = job_value(report.job, name);
  const auto* whole = std::get_if<std::int64_t>(&value);
  return whole == nullptr ? otherwise : *whole;
}

std::string gpus(const PlanReport& report) {
  const std::int64_t count = whole_of(report, "gpus", 0);
  if (count <= 0) return "";
  const std::int64_t replicas = whole_of(report, "replicas", 1);
  std::string text = counted(static_cast<std::uint64_t>(count), "GPU");
  if (replicas > 1) text += " (" + std::to_string(replicas) + " replicas of " + std::to_string(count / replicas) + ")";
  return text;
}

std::string precision(const PlanReport& report) {
  const std::string compute = text_of(report, "param_dtype");
  if (compute.empty()) return "";
  std::string text = compute;
  const std::string reduce = text_of(report, "reduce_dtype");
  const std::string master = text_of(report, "master_dtype");
  if (!reduce.empty() && reduce != compute) text += ", reduced in " + reduce;
  if (!master.empty() && master != compute) text += ", kept in " + master;
  return text;
}

}  // namespace

std::string subject(const PlanReport& report) {
  std::string text = report.model.name + ": " + parameter_count(report.model.parameters) + " parameters";
  if (report.model.active_parameters != 0 && report.model.active_parameters != report.model.parameters) {
    text += " (" + parameter_count(report.model.active_parameters) + " for each token)";
  }
  const auto add = [&](const std::string& what, const std::string& value) {
    if (!value.empty()) text += ", " + what + value;
  };
  add("", gpus(report));
  add("batch ", text_of(report, "batch"));
  add("sequence ", text_of(report, "seq_len"));
  const std::int64_t accumulated = whole_of(report, "grad_accum", 1);
  if (accumulated > 1) add("gradients of ", std::to_string(accumulated) + " batches accumulated");
  add("", precision(report));
  add("checkpoint ", text_of(report, "checkpoint"));
  const std::string form = text_of(report, "optimizer_impl");
  add("", text_of(report, "optimizer") + (form.empty() ? "" : " (" + form + ")"));
  const std::string offload = text_of(report, "offload");
  if (offload != "none") add("offload ", offload);
  add("torch ", report.torch);
  add("", decimal(report.seconds, "%.1f s"));
  return "  " + wrapped(text, 118, "  ") + "\n";
}

std::string peak_moment_in_full(const PlanReport& report) {
  return peak_moment_in_full(report.peak, "in the model's own layers (embedding, norm, head) or the loss");
}

}  // namespace plimsoll::report
