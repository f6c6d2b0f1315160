#include "plimsoll/job/worker_protocol.h"

#include <nlohmann/json.hpp>

#include "plimsoll/job/job_file.h"
#include "plimsoll/report/document.h"

namespace plimsoll::job {
namespace {

using Json = nlohmann::ordered_json;
using report::JsonValue;

Json path_or_null(const std::optional<std::filesystem::path>& path) {
  return path ? Json(path->string()) : Json(nullptr);
}

std::optional<std::filesystem::path> path_from(const JsonValue& value) {
  if (value.is_null()) return std::nullopt;
  return value.text();
}

std::string line_of(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n"; }

}  // namespace

std::string to_line(const NumberedRequest& numbered) {
  const PlanRequest& request = numbered.request;
  return line_of({{"id", numbered.id},
                  {"job", Json::parse(to_json(request.job))},
                  {"profile", request.profile.string()},
                  {"depth", request.depth},
                  {"log", path_or_null(request.log)},
                  {"snapshot", path_or_null(request.snapshot)}});
}

std::string to_line(const NumberedOutcome& numbered) {
  const PlanOutcome& outcome = numbered.outcome;
  if (outcome.report) return line_of({{"id", numbered.id}, {"report", report::json_of_report(*outcome.report)}});
  return line_of({{"id", numbered.id}, {"error", outcome.error}, {"usage", outcome.usage}});
}

NumberedRequest parse_request(const std::string& line) {
  const Json json = report::parse_document(line, "request");
  const JsonValue value(json, "request");
  return {.id = value["id"].integer(),
          .request = {.job = job_from_json(value["job"].json().dump(), "request"),
                      .profile = value["profile"].text(),
                      .depth = value["depth"].integer(),
                      .log = path_from(value["log"]),
                      .snapshot = path_from(value["snapshot"])}};
}

NumberedOutcome parse_outcome(const std::string& line) {
  const Json json = report::parse_document(line, "answer");
  const JsonValue value(json, "answer");
  NumberedOutcome numbered{.id = value["id"].integer(), .outcome = {}};
  if (const auto found = value.find("report")) {
    numbered.outcome.report = report::report_from(*found);
  } else {
    numbered.outcome.error = value["error"].text();
    numbered.outcome.usage = value["usage"].flag();
  }
  return numbered;
}

}  // namespace plimsoll::job
