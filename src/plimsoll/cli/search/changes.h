#pragma once

#include <string>
#include <vector>

#include "plimsoll/architecture/architecture.h"
#include "plimsoll/job/job.h"

namespace plimsoll::cli {

/// A job with one thing changed.
struct Change {
  std::string text;  ///< As one writes it: "--checkpoint full".
  job::Job job;
};

/// Every single change that may save memory, or that people ask about: those that change this job and that job::check
/// takes; none twice. In the order in which one would think of them.
std::vector<Change> single_changes(const job::Job& job, const architecture::Architecture& model);

}  // namespace plimsoll::cli
