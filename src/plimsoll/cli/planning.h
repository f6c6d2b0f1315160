#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "plimsoll/job/worker_protocol.h"

namespace plimsoll::cli {

using job::PlanOutcome;
using job::PlanRequest;

/// Jobs cannot be run, for a reason other than the job itself.
class PlanningFailed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A signal asked the command to end. All processes that it started have ended.
class Interrupted : public std::runtime_error {
 public:
  explicit Interrupted(int number) : std::runtime_error("interrupted"), signal(number) {}
  int signal;
};

/// Runs jobs, several at once. Commands use only this interface, so tests can replace it.
class Planning {
 public:
  /// Called as each job ends, with its index in the requests.
  using OnDone = std::function<void(std::size_t index, const PlanOutcome& outcome)>;

  virtual ~Planning() = default;
  /// The outcomes in the order of the requests. Throws PlanningFailed, or Interrupted.
  virtual std::vector<PlanOutcome> run(const std::vector<PlanRequest>& requests, const OnDone& on_done = {}) = 0;
};

/// Makes one that runs `processes` jobs at once. Throws PlanningFailed if the planner program is missing.
using StartPlanning = std::function<std::unique_ptr<Planning>(std::size_t processes)>;

/// The report of an outcome. Throws InvalidArgument with the error if the job is wrong, else PlanningFailed.
report::Report report_or_throw(PlanOutcome outcome);

}  // namespace plimsoll::cli
