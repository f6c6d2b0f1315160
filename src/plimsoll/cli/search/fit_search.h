#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "plimsoll/architecture/architecture.h"
#include "plimsoll/cli/planning.h"
#include "plimsoll/job/job.h"
#include "plimsoll/report/fit.h"

namespace plimsoll::cli {

/// Ascending values, each with its index (place).
struct Candidates {
  std::int64_t count = 0;
  std::function<std::int64_t(std::int64_t place)> value;

  /// The place of the first value that is not below `least`; `count` if there is none.
  std::int64_t first_from(std::int64_t least) const;
};

/// A search for the last value that fits (kMaximize), or for the first one (kMinimize).
struct FitQuestion {
  std::string what;  ///< The setting: "batch".
  report::Fit::Direction direction = report::Fit::Direction::kMaximize;
  Candidates candidates;
  std::function<PlanRequest(std::int64_t value)> request;
  Bytes reserve = 0;         ///< Memory that must be left.
  std::size_t parallel = 1;  ///< The number of values to try at the same time.
};

/// Called before each group of values is tried.
using OnProbe = std::function<void(const report::Fit& so_far, std::int64_t first, std::int64_t last)>;

/// Finds the limit from runs only: doubles the value until the answer changes or the candidates end, then bisects. Sets
/// the limit, the next value beyond it, and the probes; the caller sets the rest.
///
///     value     1  2  4  8 16                doubling: 16 is the first that does not fit
///                        8    12     16      then bisection, at several places at the same time if allowed
///
/// A value between two that fit is assumed to fit. If answers contradict that, the limit is the last value before the
/// first that does not fit (kMaximize) or that fits (kMinimize).
///
/// Throws as report_or_throw does if a run has no report, with the value in the message.
/// REQUIRES: candidates.count > 0.
report::Fit find_limit(const FitQuestion& question, Planning& planning, const OnProbe& on_probe = {});

enum class Search : std::uint8_t { kBatch, kSeqLen, kGpus };

struct FitRange {
  Search search = Search::kBatch;
  std::optional<std::int64_t> limit = {};     ///< The largest value to try.
  std::optional<std::int64_t> multiple = {};  ///< Try only multiples of it.
};

/// The values that a search may try, and a note on them for the reader.
struct FitField {
  std::string name;  ///< The setting: "batch".
  Candidates candidates;
  std::string note;
  std::int64_t step = 1;  ///< Between the larger of the values.
};

/// "batch", "seq-len" or "gpus".
std::string searched_field(Search search);

/// The job with another value of `field`.
job::Job job_with(const job::Job& job, const std::string& field, std::int64_t value);

/// The values that job::check accepts, up to --limit, in multiples of --multiple. GPUs: each number up to 8 (one
/// machine), then multiples of 8.
/// Throws InvalidArgument if there are none: the message of job::check, or that the limit is too small.
FitField fit_field(const FitRange& range, const job::Job& job, const architecture::Architecture& model);

}  // namespace plimsoll::cli
