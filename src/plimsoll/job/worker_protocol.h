#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "plimsoll/job/job.h"
#include "plimsoll/pretend/model/profile.h"
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

/// The GPU of a profile as reports show it.
inline report::Gpu gpu_of(const pretend::Profile& profile) {
  return {.name = profile.name,
          .device_name = profile.device_name,
          .memory = profile.memory,
          .compute_capability = std::to_string(profile.compute_major) + "." + std::to_string(profile.compute_minor),
          .multiprocessors = static_cast<std::uint64_t>(profile.multiprocessors)};
}

/// One line with its line feed.
std::string to_line(const NumberedRequest& request);
std::string to_line(const NumberedOutcome& outcome);

/// Throw FormatError that names the field, what was expected and what was found.
NumberedRequest parse_request(const std::string& line);
NumberedOutcome parse_outcome(const std::string& line);

}  // namespace plimsoll::job
