#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plimsoll/report/report.h"

namespace plimsoll::plan {

/// Cuts a run at the borders of its phases and reads the caching allocator's own peaks between them, as the observer of
/// `plimsoll run` does: a step is forward, backward, what comes between (other), optimizer; what follows the
/// optimizer's step belongs to the next step's "other", and what precedes the first forward to no step.
class PhaseMeter {
 public:
  /// Of the current CUDA device, which must be initialised.
  PhaseMeter();

  /// The phase that begins now: "forward", "backward", "optimizer" or "other".
  void enter(const std::string& phase);
  /// The optimizer's step is over, and with it the step.
  void end_step();
  /// The run is over, or failed: files what happened since the last border.
  void close();

  const std::string& phase() const { return phase_; }
  /// The number of the open step; nothing before the first and between two.
  std::optional<std::int64_t> step() const;

  const std::optional<report::StepPeaks>& before_steps() const { return before_; }
  const std::vector<report::StepPeaks>& steps() const { return steps_; }
  /// The highest of everything, with the step and phase where active was highest (the first of equals).
  const report::Peak& highest() const { return highest_; }

 private:
  report::PhasePeaks cut();
  void file(report::StepPeaks& step);

  std::string phase_ = "other";
  std::optional<report::StepPeaks> before_;
  std::vector<report::StepPeaks> steps_;
  std::optional<report::StepPeaks> tail_;  ///< What followed the last step.
  bool open_ = false;
  report::Peak highest_;
};

}  // namespace plimsoll::plan
