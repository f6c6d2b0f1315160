#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "plimsoll/cli/planning.h"
#include "plimsoll/report/fit.h"

namespace plimsoll::cli {

/// Values to choose from, ascending, each known by its place.
struct Candidates {
  std::int64_t count = 0;
  std::function<std::int64_t(std::int64_t place)> value;

  /// The first that is not below `least`; `count` where all are.
  std::int64_t first_from(std::int64_t least) const;
};

/// A search for the last value that fits (kMaximize), or for the first one (kMinimize).
struct FitQuestion {
  std::string what;  ///< The setting: "batch".
  report::Fit::Direction direction = report::Fit::Direction::kMaximize;
  Candidates candidates;
  std::function<PlanRequest(std::int64_t value)> request;
  std::size_t parallel = 1;  ///< Values to try at once.
};

/// Called before values are tried.
using OnProbe = std::function<void(const report::Fit& so_far, std::int64_t first, std::int64_t last)>;

/// Answers with real runs only: each value twice the one before until the answer changes or the candidates end, then
/// between those two. Sets the limit, what lies beyond it, and what was tried; the rest is the caller's.
///
///     value     1  2  4  8 16                doubling: 16 is the first that does not fit
///                        8    12     16      then bisection, at several places at once where that is allowed
///
/// That a value between two that fit does too is assumed. Where answers contradict that, the limit is the last value
/// before the first one that does not fit (kMaximize) or that does (kMinimize).
///
/// Throws as report_or_throw does where a run has no report, with the value in the message.
/// REQUIRES: candidates.count > 0.
report::Fit find_limit(const FitQuestion& question, Planning& planning, const OnProbe& on_probe = {});

}  // namespace plimsoll::cli
