#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "plimsoll/cli/planning.h"
#include "plimsoll/report/verdict.h"

/// A report of a job that fits, or that does not.
inline plimsoll::report::Report report_of(bool fits, plimsoll::Bytes device = plimsoll::Bytes{1} << 30) {
  plimsoll::report::Report report;
  report.gpu = {.name = "H100-80GB", .device_name = "NVIDIA H100 80GB HBM3", .memory = plimsoll::Bytes{80} << 30};
  report.as_planned().model = {
      .name = "llama3-8b", .family = "llama", .parameters = 8030261248, .active_parameters = 8030261248, .blocks = 32};
  report.peak.active = report.peak.reserved = report.peak.device = fits ? device : plimsoll::Bytes{90} << 30;
  report.peak.step = 1;
  report.peak.phase = "backward";
  if (!fits) {
    report.oom.emplace();
    report.oom->requested = 5;
    report.oom->phase = "forward";
    report.oom->message = "no";
  }
  report.torch = "2.13.0";
  report.verdict = plimsoll::report::verdict_of(report);
  return report;
}

/// Answers in the place of the program that runs jobs.
class FakePlanning : public plimsoll::cli::Planning {
 public:
  using Answer = std::function<plimsoll::cli::PlanOutcome(const plimsoll::cli::PlanRequest&)>;

  explicit FakePlanning(Answer answer) : answer_(std::move(answer)) {}

  std::vector<plimsoll::cli::PlanOutcome> run(const std::vector<plimsoll::cli::PlanRequest>& requests,
                                              const OnDone& on_done) override {
    std::vector<plimsoll::cli::PlanOutcome> outcomes;
    batches.push_back(requests.size());
    for (const auto& request : requests) {
      asked.push_back(request);
      outcomes.push_back(answer_(request));
      if (on_done) on_done(outcomes.size() - 1, outcomes.back());
    }
    return outcomes;
  }

  std::vector<plimsoll::cli::PlanRequest> asked;
  std::vector<std::size_t> batches;  ///< How many at once.

 private:
  Answer answer_;
};

/// Starts a FakePlanning, and keeps its requests.
struct FakeStart {
  explicit FakeStart(FakePlanning::Answer answer) : planning(std::make_shared<FakePlanning>(std::move(answer))) {}

  plimsoll::cli::StartPlanning start() {
    return [this](std::size_t count) -> std::unique_ptr<plimsoll::cli::Planning> {
      processes = count;
      struct Shared : plimsoll::cli::Planning {
        std::vector<plimsoll::cli::PlanOutcome> run(const std::vector<plimsoll::cli::PlanRequest>& requests,
                                                    const OnDone& on_done) override {
          return planning->run(requests, on_done);
        }
        std::shared_ptr<FakePlanning> planning;
      };
      auto shared = std::make_unique<Shared>();
      shared->planning = planning;
      return shared;
    };
  }

  std::shared_ptr<FakePlanning> planning;
  std::size_t processes = 0;  ///< 0: not started.
};
