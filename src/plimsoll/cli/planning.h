#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "plimsoll/cli/installation.h"
#include "plimsoll/cli/process/worker_process.h"
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

/// The program that runs jobs: PLIMSOLL_PLANNER, else plimsoll-planner beside the command.
/// Throws PlanningFailed with advice if the program is missing.
std::filesystem::path find_planner(const Installation& installation);

/// Runs jobs in that program (plan/worker.h). The destructor ends the program and all its processes. Meanwhile, signals
/// that end the command wait for `run`.
class Planner : public Planning {
 public:
  /// Throws SystemError if `program` cannot be started.
  Planner(const std::filesystem::path& program, std::size_t processes);

  /// Throws PlanningFailed if the program dies, or if an answer is not valid.
  std::vector<PlanOutcome> run(const std::vector<PlanRequest>& requests, const OnDone& on_done = {}) override;

 private:
  void send(std::string& outgoing, std::size_t& sent);
  bool receive();
  job::NumberedOutcome parse(const std::string& line) const;

  std::filesystem::path program_;
  SignalWatch signals_;
  WorkerProcess worker_;
  std::string incoming_;
  std::int64_t next_id_ = 0;
};

}  // namespace plimsoll::cli
