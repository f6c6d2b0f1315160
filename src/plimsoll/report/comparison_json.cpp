#include "plimsoll/report/comparison.h"
#include "plimsoll/report/plan_report_json.h"
#include "plimsoll/report/plan_report_read.h"

namespace plimsoll::report {
namespace {

/// Documents of a plimsoll that did not look whose the memory was have no such fields.
void read_attribution(const Fields& document, ComparedReport& report) {
  const Fields peak = document.object("peak");
  report.is_attributed = peak.has("categories") && !peak.is_null("categories");
  if (!report.is_attributed) {
    static_cast<Peak&>(report.peak) = read_peak(peak);
    if (document.has("attribution")) report.attribution = document.text_or_null("attribution");
    return;
  }
  report.peak = read_attributed_peak(peak);
  report.modules = read_modules(document);
}

ComparedReport read_run(const Fields& document, const std::string& origin) {
  ComparedReport report;
  report.name = origin;
  report.command = "run";
  if (!document.is_null("fits")) report.fits = document.flag("fits");
  report.gpu = read_gpu(document.object("gpu"));
  read_attribution(document, report);
  if (!document.is_null("before_steps")) report.before_steps = read_step(document.object("before_steps"));
  document.each("steps", [&](const Fields& step) { report.steps.push_back(read_step(step)); });
  if (!document.is_null("after_steps")) report.after_steps = read_step(document.object("after_steps"));
  return report;
}

Json side_json(const ComparedReport& report) {
  return {{"name", report.name},
          {"command", report.command},
          {"model", report.plan ? Json(report.plan->model.name) : Json(nullptr)},
          {"fits", or_null(report.fits)},
          {"gpu", gpu_json(report.gpu)}};
}

Json changes_json(const std::vector<BytesChange>& changes) {
  Json list = Json::array();
  for (const BytesChange& change : changes) {
    list.push_back({{"name", change.name},
                    {"a_bytes", or_null(change.a)},
                    {"b_bytes", or_null(change.b)},
                    {"difference_bytes", change.difference()}});
  }
  return list;
}

Json settings_json(const std::vector<SettingChange>& settings) {
  Json list = Json::array();
  for (const SettingChange& change : settings) {
    list.push_back(
        {{"name", underscored(change.name)}, {"a", job_value_json(change.a)}, {"b", job_value_json(change.b)}});
  }
  return list;
}

}  // namespace

ComparedReport compared_from_json(std::string_view text, const std::string& origin) {
  const Json json = parse_document(text, origin);
  const Fields document(json, origin);
  check_version(document);
  if (!document.has("command")) return read_run(document, origin);
  if (document.text("command") != "plan") {
    document.mismatch("command", "\"plan\", or absent as in documents of run", document.value("command"));
  }
  return compared(read_plan_report(document), origin);
}

std::string to_json(const Comparison& comparison, JsonForm form) {
  Json json{{"version", 1}, {"command", "compare"}, {"a", side_json(comparison.a)}, {"b", side_json(comparison.b)}};
  json["job"] = comparison.plans ? settings_json(comparison.settings) : Json(nullptr);
  json["books"] = changes_json(comparison.books);
  json["categories"] = comparison.attributed ? changes_json(comparison.categories) : Json(nullptr);
  json["phases"] = changes_json(comparison.phases);
  json["modules"] = comparison.attributed ? changes_json(comparison.modules) : Json(nullptr);
  return dumped(json, form);
}

}  // namespace plimsoll::report
