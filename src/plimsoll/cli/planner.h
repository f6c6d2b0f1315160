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
