#include "plimsoll/cli/worker_protocol.h"

#include <nlohmann/json.hpp>

#include "plimsoll/base/errors.h"
#include "plimsoll/job/job_json.h"
#include "plimsoll/job/values.h"
#include "plimsoll/report/plan_report_read.h"

namespace plimsoll::cli {
namespace {

using Json = nlohmann::ordered_json;

Json path_or_null(const std::optional<std::filesystem::path>& path) {
  return path ? Json(path->string()) : Json(nullptr);
}

}  // namespace

std::string request_line(std::int64_t id, const PlanRequest& request) {
  const Json json{{"id", id},
                  {"job", Json::parse(job::to_json(request.job))},
                  {"profile", request.profile.string()},
                  {"depth", request.depth},
                  {"log", path_or_null(request.log)},
                  {"snapshot", path_or_null(request.snapshot)}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Answered parse_answer(const std::string& line, const std::string& program) {
  const auto refuse = [&](const std::string& why) {
    throw PlanningFailed("the planner " + program + " answered with something that is no answer: " + why);
  };
  const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("id") || !json["id"].is_number_integer()) refuse(job::in_quotes(line));
  Answered answer{.id = json["id"].get<std::int64_t>(), .outcome = {}};
  if (json.contains("report")) {
    try {
      answer.outcome.report = report::read_plan_report(report::Fields(json["report"], "its report"));
    } catch (const FormatError& error) {
      refuse(error.what());
    }
    return answer;
  }
  if (!json.contains("error") || !json["error"].is_string()) refuse(job::in_quotes(line));
  answer.outcome.error = json["error"].get<std::string>();
  answer.outcome.usage = json.value("usage", Json(false)) == Json(true);
  return answer;
}

}  // namespace plimsoll::cli
