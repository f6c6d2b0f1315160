#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "plimsoll/cli/installation.h"
#include "plimsoll/cli/planning.h"
#include "plimsoll/cli/process/signal_watch.h"
#include "plimsoll/cli/process/worker_process.h"

namespace plimsoll::cli {

/// The program that runs jobs: PLIMSOLL_PLANNER, else plimsoll-planner beside the command.
/// Throws PlanningFailed that says what to do where there is none.
std::filesystem::path find_planner(const Installation& installation);

/// Runs jobs in that program (plan/worker.h), which lives as long as this does. Its end is the end of the program and
/// of all that it started. While it lives, signals that end us wait for `run`.
class Planner : public Planning {
 public:
  /// Throws SystemError if `program` cannot be started.
  Planner(const std::filesystem::path& program, std::size_t processes);

  /// Throws PlanningFailed where the program dies, or answers with what is no answer.
  std::vector<PlanOutcome> run(const std::vector<PlanRequest>& requests, const OnDone& on_done = {}) override;

 private:
  void send(std::string& outgoing, std::size_t& sent);
  bool receive();

  std::filesystem::path program_;
  SignalWatch signals_;
  WorkerProcess worker_;
  std::string incoming_;
  std::int64_t next_id_ = 0;
};

}  // namespace plimsoll::cli
