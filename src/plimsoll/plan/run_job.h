#pragma once

#include "plimsoll/job/worker_protocol.h"
#include "plimsoll/report/report.h"

namespace plimsoll::plan {

/// Runs the job on the pretend GPU of this process, and reports. If memory runs out, the report has `oom` and the
/// values until then. Writes the log and the snapshot if the request names them.
///
/// A process can run one job only: the caching allocator, the process group and the card belong to the process.
/// Throws InvalidArgument or FormatError if the job is wrong.
report::Report run_job(const job::PlanRequest& request);

}  // namespace plimsoll::plan
