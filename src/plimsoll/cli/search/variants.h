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

/// A job with one change.
struct Change {
  std::string text;  ///< As on the command line: "--checkpoint full".
  job::Job job;
};

/// Every single change that may save memory, or that users ask about, if it changes this job and job::check accepts it.
/// Each once, the most common first.
std::vector<Change> single_changes(const job::Job& job, const architecture::Architecture& model);

/// One combination: a job, or the reason for which it is refused.
struct SweepJob {
  std::vector<std::string> values;  ///< One for each axis.
  std::optional<job::Job> job = {};
  std::string error = {};
};

struct SweepJobs {
  std::vector<std::string> axes;  ///< The fields with several values, in the order of job::fields().
  std::vector<SweepJob> rows;     ///< The last axis fastest.
  job::JobFile file;              ///< Notes on the job file.
};

/// Makes an axis of each flag with several values. A combination that job::check or the GPU refuses is a row with an
/// error. Throws InvalidArgument for wrong values, if no flag has several values, if there are too many combinations,
/// and if every combination is refused; FormatError for the job file.
SweepJobs sweep_jobs(const JobOptions& options, const Installation& installation);

}  // namespace plimsoll::cli
