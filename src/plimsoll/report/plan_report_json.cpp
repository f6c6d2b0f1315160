#include "plimsoll/report/plan_report_json.h"

namespace plimsoll::report {
namespace {

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
  json["modules"] = modules_json(report.modules);
  json["causes"] = causes_json(report.causes);
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
