#include "plimsoll/report/fit.h"
#include "plimsoll/report/plan_report_json.h"

namespace plimsoll::report {
namespace {

Json binding_json(const Fit& fit) {
  const auto binding = binding_of(fit);
  if (!binding) return nullptr;
  return {{"book", text_or_null(binding->book)},
          {"category", text_or_null(binding->category)},
          {"category_bytes", binding->category_bytes},
          {"phase", text_or_null(binding->phase)},
          {"module", text_or_null(binding->module)}};
}

Json document(const std::optional<PlanReport>& report) { return report ? plan_json(*report) : Json(nullptr); }

}  // namespace

std::string to_json(const Fit& fit, JsonForm form) {
  Json json{{"version", 1}, {"command", "fit"}, {"model", fit.model}, {"gpu", gpu_json(fit.gpu)}};
  json["search"] = underscored(fit.what);
  json["direction"] = fit.direction == Fit::Direction::kMaximize ? "maximize" : "minimize";
  json["limit"] = or_null(fit.limit);
  json["at_limit"] = document(fit.at_limit);
  json["beyond"] = or_null(fit.beyond);
  json["at_beyond"] = document(fit.at_beyond);
  json["binds"] = binding_json(fit);
  json["probes"] = Json::array();
  for (const FitProbe& probe : fit.probes) json["probes"].push_back({{"value", probe.value}, {"fits", probe.fits}});
  json["note"] = text_or_null(fit.note);
  return dumped(json, form);
}

}  // namespace plimsoll::report
