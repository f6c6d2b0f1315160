#pragma once

#include <string>
#include <vector>

#include "plimsoll/architecture/architecture.h"
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

}  // namespace plimsoll::cli
