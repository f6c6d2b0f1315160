#include "plimsoll/report/plan_report_read.h"

#include <nlohmann/json.hpp>

namespace plimsoll::report {
namespace {

PlanModel read_model(const Fields& fields) {
  return {fields.text("name"), fields.text("family"), fields.whole("parameters"), fields.whole("active_parameters"),
          fields.whole("blocks")};
}

JobValue read_job_value(const Fields& fields, const char* name) {
  const auto& json = fields.value(name);
  if (json.is_null()) return nullptr;
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_integer()) return fields.integer(name);
  if (json.is_number()) return json.get<double>();
  if (json.is_string()) return json.get<std::string>();
  fields.mismatch(name, "text, a number, true, false or null", json);
}

JobValues read_job(const Fields& fields) {
  JobValues job;
  for (const std::string& name : fields.names()) job.emplace_back(name, read_job_value(fields, name.c_str()));
  return job;
}

PlanOom read_oom(const Fields& fields) {
  PlanOom oom;
  oom.requested = fields.whole("requested_bytes");
  oom.device_free = fields.whole("device_free_bytes");
  oom.device_total = fields.whole("device_total_bytes");
  oom.active = fields.whole("active_bytes");
  oom.reserved = fields.whole("reserved_bytes");
  oom.step = fields.integer_or_null("step");
  oom.phase = fields.text_or_null("phase");
  oom.module = fields.text_or_null("module");
  oom.message = fields.text("message");
  return oom;
}

}  // namespace

PlanReport read_plan_report(const Fields& document) {
  check_version(document);
  if (document.text("command") != "plan") document.mismatch("command", "\"plan\"", document.value("command"));
  PlanReport report;
  report.gpu = read_gpu(document.object("gpu"));
  report.model = read_model(document.object("model"));
  report.job = read_job(document.object("job"));
  report.peak = read_attributed_peak(document.object("peak"));
  if (!document.is_null("oom")) report.oom = read_oom(document.object("oom"));
  if (document.flag("fits") != report.fits()) {
    document.fail("fits", std::string("says ") + (report.fits() ? "false" : "true") + ", and 'oom' the opposite");
  }
  if (!document.is_null("before_steps")) report.before_steps = read_step(document.object("before_steps"));
  document.each("steps", [&](const Fields& step) { report.steps.push_back(read_step(step)); });
  report.modules = read_modules(document);
  report.causes = read_causes(document);
  report.host = document.whole("host_bytes");
  report.host_pinned = document.whole("host_pinned_bytes");
  report.ops = document.whole("ops");
  report.alloc_retries = document.whole("alloc_retries");
  report.notes = document.texts("notes");
  report.torch = document.text_or_null("torch");
  report.step_seconds = document.number("step_seconds");
  report.seconds = document.number("seconds");
  return report;
}

PlanReport plan_report_from_json(std::string_view text, const std::string& origin) {
  const auto json = parse_document(text, origin);
  return read_plan_report(Fields(json, origin));
}

}  // namespace plimsoll::report
