#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plimsoll/architecture/architecture.h"
#include "plimsoll/cli/grammar/common_flags.h"
#include "plimsoll/cli/installation.h"
#include "plimsoll/cli/job_setup.h"
#include "plimsoll/job/job.h"

namespace plimsoll::cli {

/// One combination: a job, or why it is none.
struct SweepJob {
  std::vector<std::string> values;  ///< One for each axis.
  std::optional<job::Job> job = {};
  std::string error = {};
};

struct SweepJobs {
  std::vector<std::string> axes;  ///< Names of fields that have several values, in the order of job::fields().
  std::vector<SweepJob> rows;     ///< The last axis fastest.
  job::JobFile file;              ///< What there is to say about the job's file.
};

/// Takes the flags apart: those with several values are axes. Jobs that contradict themselves, the model or the card
/// are rows with an error.
/// Throws InvalidArgument where no flag has several values, where there are too many combinations, for values that a
/// flag does not take, and where not one job can be run; FormatError for the job's file.
SweepJobs sweep_jobs(const JobOptions& options, const Installation& installation);

}  // namespace plimsoll::cli
