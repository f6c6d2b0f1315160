#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "plimsoll/job/job.h"
#include "plimsoll/report/plan_report.h"

namespace plimsoll::cli {

/// A job to be run on a pretend card, and what is wanted of it beside its report.
struct PlanRequest {
  job::Job job;
  std::filesystem::path profile;  ///< Of the card.
  std::int64_t depth = 2;
  std::optional<std::filesystem::path> log = {};
  std::optional<std::filesystem::path> snapshot = {};
};

/// What came of it: a report, or why there is none.
struct PlanOutcome {
  std::optional<report::PlanReport> report = {};
  std::string error = {};
  bool usage = false;  ///< The job itself is wrong.
};

/// Jobs cannot be run any more, for a reason that is no fault of what was asked for.
class PlanningFailed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A signal asked us to end. All that was started has been ended.
class Interrupted : public std::runtime_error {
 public:
  explicit Interrupted(int number) : std::runtime_error("interrupted"), signal(number) {}
  int signal;
};

/// Runs jobs, several at once. Commands know no more of it, so tests can answer in its place.
class Planning {
 public:
  /// Called as each job ends, with its place among the requests.
  using OnDone = std::function<void(std::size_t index, const PlanOutcome& outcome)>;

  virtual ~Planning() = default;
  /// The outcomes in the order of the requests. Throws PlanningFailed, or Interrupted.
  virtual std::vector<PlanOutcome> run(const std::vector<PlanRequest>& requests, const OnDone& on_done = {}) = 0;
};

/// Makes one that runs so many jobs at once. Throws PlanningFailed where there is nothing to run jobs with.
using StartPlanning = std::function<std::unique_ptr<Planning>(std::size_t processes)>;

/// The report of an outcome. Throws InvalidArgument with its error where the job is wrong, else PlanningFailed.
report::PlanReport report_or_throw(PlanOutcome outcome);

}  // namespace plimsoll::cli
