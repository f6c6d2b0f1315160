#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "plimsoll/architecture/architecture.h"
#include "plimsoll/cli/search/fit_search.h"
#include "plimsoll/job/job.h"

namespace plimsoll::cli {

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
