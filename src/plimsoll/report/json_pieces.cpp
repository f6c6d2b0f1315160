#include "plimsoll/report/json_pieces.h"

#include <algorithm>

namespace plimsoll::report {

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

std::string underscored(std::string name) {
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

Json gpu_json(const Gpu& gpu) {
  return {{"name", gpu.name},
          {"device_name", gpu.device_name},
          {"memory_bytes", gpu.memory},
          {"compute_capability", std::to_string(gpu.compute_major) + "." + std::to_string(gpu.compute_minor)},
          {"multiprocessors", gpu.multiprocessors}};
}

Json device_parts_json(const DeviceParts& parts) {
  return {{"segments", parts.segments}, {"context", parts.context}, {"nccl", parts.nccl}, {"handles", parts.handles}};
}

Json step_json(const StepPeaks& step) {
  Json json;
  if (step.step) json["step"] = *step.step;
  json["active_peak_bytes"] = step.active_peak;
  json["allocated_peak_bytes"] = step.allocated_peak;
  json["reserved_peak_bytes"] = step.reserved_peak;
  json["phases"] = Json::object();
  for (const auto& [phase, peaks] : step.phases) {
    json["phases"][phase] = {{"active_peak_bytes", peaks.active_peak},
                             {"allocated_peak_bytes", peaks.allocated_peak},
                             {"reserved_peak_bytes", peaks.reserved_peak},
                             {"active_end_bytes", peaks.active_end},
                             {"reserved_end_bytes", peaks.reserved_end}};
  }
  return json;
}

std::string dumped(const Json& json, JsonForm form) {
  return json.dump(form == JsonForm::kOneLine ? -1 : 2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace plimsoll::report
