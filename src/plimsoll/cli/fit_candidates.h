#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "plimsoll/architecture/architecture.h"
#include "plimsoll/cli/fit_search.h"
#include "plimsoll/cli/options.h"
#include "plimsoll/job/job.h"

namespace plimsoll::cli {

/// What a search may try, and what a reader must know of that.
struct FitField {
  std::string name;  ///< The setting: "batch".
  Candidates candidates;
  std::string note;
};

/// "batch", "seq-len" or "gpus".
std::string searched_field(FitOptions::Search search);

/// The job with another value of that field.
job::Job job_with(const job::Job& job, const std::string& field, std::int64_t value);

/// The values that job::check takes, up to --limit, in multiples of --multiple. GPUs: each number up to those of one
/// machine (8), then whole machines.
/// Throws InvalidArgument where there are none: job::check's own complaint, or that the limit is below the first.
FitField fit_field(const FitOptions& options, const job::Job& job, const architecture::Architecture& model);

}  // namespace plimsoll::cli
