#pragma once

#include <filesystem>
#include <optional>

#include "plimsoll/job/job.h"
#include "plimsoll/report/plan_report.h"

namespace plimsoll::plan {

/// What is wanted of a run beside its report.
struct Wanted {
  int depth = 2;                                       ///< Modules of a path with more parts are left out.
  std::optional<std::filesystem::path> log = {};       ///< The ledger's events.
  std::optional<std::filesystem::path> snapshot = {};  ///< torch's memory snapshot, for memory_viz.
};

/// Runs the job on the process's pretend GPU, with the memory that it has, and reports. Where memory runs out the
/// report says so in `oom`, and the rest is what was seen until then.
///
/// One job a process: the caching allocator, the process group and the card are the process's.
/// Throws InvalidArgument or FormatError for a job that is none.
report::PlanReport run_job(const job::Job& job, const Wanted& wanted = {});

}  // namespace plimsoll::plan
