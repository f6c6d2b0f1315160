#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "plimsoll/job/job.h"
#include "plimsoll/report/report.h"

/// The protocol between the plimsoll command and plimsoll-planner, the process that runs jobs. Each request and each
/// answer is one line of JSON. Answers come in the order in which jobs end.
namespace plimsoll::job {

/// A job to run on a pretend GPU, and the files to write beside its report.
struct PlanRequest {
  Job job;
  std::filesystem::path profile;                       ///< Of the GPU.
  std::int64_t depth = 2;                              ///< Parts in the path of a module; deeper modules are left out.
  std::optional<std::filesystem::path> log = {};       ///< The ledger's events.
  std::optional<std::filesystem::path> snapshot = {};  ///< torch's memory snapshot, for memory_viz.
};

/// The result: a report, or the reason why there is none.
struct PlanOutcome {
  std::optional<report::Report> report = {};
  std::string error = {};
  bool usage = false;  ///< The job itself is wrong.
};

struct NumberedRequest {
  std::int64_t id = 0;
  PlanRequest request;
};

struct NumberedOutcome {
  std::int64_t id = 0;
  PlanOutcome outcome;
};

/// One line with its line feed.
std::string to_line(const NumberedRequest& request);
std::string to_line(const NumberedOutcome& outcome);

/// Throw FormatError that names the field, what was expected and what was found.
NumberedRequest parse_request(const std::string& line);
NumberedOutcome parse_outcome(const std::string& line);

}  // namespace plimsoll::job
