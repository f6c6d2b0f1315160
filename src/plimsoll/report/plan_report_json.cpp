#include "plimsoll/report/plan_report_json.h"

namespace plimsoll::report {
namespace {

Json categories_json(const std::vector<CategoryBytes>& categories) {
  Json json = Json::object();
  for (const CategoryBytes& entry : categories) json[entry.category] = entry.bytes;
  return json;
}

Json model_json(const PlanModel& model) {
  return {{"name", model.name},
          {"family", model.family},
          {"parameters", model.parameters},
          {"active_parameters", model.active_parameters},
          {"blocks", model.blocks}};
}

Json job_json(const JobValues& job) {
  Json json = Json::object();
  for (const auto& [name, value] : job) json[underscored(name)] = job_value_json(value);
  return json;
}

Json peak_json(const PlanPeak& peak) {
  return {{"active_bytes", peak.active},
          {"allocated_bytes", peak.allocated},
          {"reserved_bytes", peak.reserved},
          {"device_bytes", peak.device},
          {"segments", peak.segments},
          {"step", or_null(peak.step)},
          {"phase", text_or_null(peak.phase)},
          {"module", text_or_null(peak.module)},
          {"stage", text_or_null(peak.stage)},
          {"categories", categories_json(peak.categories)},
          {"device_parts", device_parts_json(peak.device_parts)}};
}

Json oom_json(const PlanOom& oom) {
  return {{"requested_bytes", oom.requested},
          {"device_free_bytes", oom.device_free},
          {"device_total_bytes", oom.device_total},
          {"active_bytes", oom.active},
          {"reserved_bytes", oom.reserved},
          {"step", or_null(oom.step)},
          {"phase", text_or_null(oom.phase)},
          {"module", text_or_null(oom.module)},
          {"message", oom.message}};
}

Json module_json(const PlanModule& module) {
  return {{"name", module.name},
          {"type", module.type},
          {"fsdp_unit", module.fsdp_unit},
          {"parameters", module.parameters},
          {"highest_bytes", module.highest},
          {"total_bytes", module.total},
          {"at_peak", categories_json(module.at_peak)}};
}

Json cause_json(const PlanCause& cause) {
  Json owners = Json::array();
  for (const auto& [name, bytes] : cause.owners) owners.push_back({{"name", name}, {"bytes", bytes}});
  return {{"bytes", cause.bytes},
          {"category", cause.category},
          {"why", cause.why},
          {"sentence", cause.sentence},
          {"owners", owners}};
}

}  // namespace

Json job_value_json(const JobValue& value) {
  return std::visit([](const auto& held) { return Json(held); }, value);
}

Json plan_json(const PlanReport& report) {
  Json json;
  json["version"] = 1;
  json["command"] = "plan";
  json["fits"] = report.fits();
  json["gpu"] = gpu_json(report.gpu);
  json["model"] = model_json(report.model);
  json["job"] = job_json(report.job);
  json["peak"] = peak_json(report.peak);
  json["oom"] = report.oom ? oom_json(*report.oom) : Json(nullptr);
  json["before_steps"] = report.before_steps ? step_json(*report.before_steps) : Json(nullptr);
  json["steps"] = Json::array();
  for (const StepPeaks& step : report.steps) json["steps"].push_back(step_json(step));
  json["modules"] = Json::array();
  for (const PlanModule& module : report.modules) json["modules"].push_back(module_json(module));
  json["causes"] = Json::array();
  for (const PlanCause& cause : report.causes) json["causes"].push_back(cause_json(cause));
  json["host_bytes"] = report.host;
  json["host_pinned_bytes"] = report.host_pinned;
  json["ops"] = report.ops;
  json["alloc_retries"] = report.alloc_retries;
  json["notes"] = report.notes;
  json["torch"] = text_or_null(report.torch);
  json["step_seconds"] = report.step_seconds;
  json["seconds"] = report.seconds;
  return json;
}

std::string to_json(const PlanReport& report, JsonForm form) { return dumped(plan_json(report), form); }

}  // namespace plimsoll::report
