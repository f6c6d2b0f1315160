#include "plimsoll/report/json_pieces.h"

#include <algorithm>

#include "plimsoll/report/text/causes.h"

namespace plimsoll::report {
namespace {

Json categories_json(const std::vector<CategoryBytes>& categories) {
  Json json = Json::object();
  for (const CategoryBytes& entry : categories) json[entry.category] = entry.bytes;
  return json;
}

Json module_json(const ModuleRow& module) {
  return {{"name", module.name},
          {"type", module.type},
          {"fsdp_unit", module.fsdp_unit},
          {"parameters", module.parameters},
          {"highest_bytes", module.highest},
          {"total_bytes", module.total},
          {"at_peak", categories_json(module.at_peak)}};
}

Json cause_json(const PeakCause& cause) {
  Json owners = Json::array();
  for (const auto& [name, bytes] : cause.owners) owners.push_back({{"name", name}, {"bytes", bytes}});
  return {{"bytes", cause.bytes},
          {"category", cause.category},
          {"why", cause.why},
          {"sentence", sentence(cause)},
          {"owners", owners},
          {"allocations", cause.allocations},
          {"one_per_shard", cause.one_per_shard}};
}

}  // namespace

Json device_parts_json(const DeviceParts& parts) {
  return {{"segments", parts.segments}, {"context", parts.context}, {"nccl", parts.nccl}, {"handles", parts.handles}};
}

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

Json peak_json(const AttributedPeak& peak) {
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

Json modules_json(const std::vector<ModuleRow>& modules) {
  Json list = Json::array();
  for (const ModuleRow& module : modules) list.push_back(module_json(module));
  return list;
}

Json causes_json(const std::vector<PeakCause>& causes) {
  Json list = Json::array();
  for (const PeakCause& cause : causes) list.push_back(cause_json(cause));
  return list;
}

std::string to_json(const Attribution& attribution) {
  const Json json = {{"peak",
                      {{"categories", categories_json(attribution.categories)},
                       {"module", text_or_null(attribution.module)},
                       {"stage", text_or_null(attribution.stage)}}},
                     {"modules", modules_json(attribution.modules)},
                     {"causes", causes_json(attribution.causes)}};
  return dumped(json, JsonForm::kOneLine);
}

std::string dumped(const Json& json, JsonForm form) {
  return json.dump(form == JsonForm::kOneLine ? -1 : 2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace plimsoll::report
