#pragma once

#include <cstddef>
#include <functional>

namespace plimsoll::plan {

/// A process that runs jobs for another one. It has torch loaded and nothing of CUDA begun, and forks for each job: so
/// a job costs no start of a program, and finds a card and an allocator that nobody has used.
///
/// A request is a line of JSON on the input:
///     {"id": 7, "job": {…}, "profile": "H100-80GB.json", "depth": 2, "log": null, "snapshot": null}
/// and an answer one on the output, in the order in which jobs are done:
///     {"id": 7, "report": {…}}  or  {"id": 7, "error": "…", "usage": true}
/// `usage`: the job itself is wrong. Where memory runs out, the job is run once more on a card with more of it, and the
/// report is of that run, with what happened in the first one as its "oom".
struct WorkerOptions {
  int input = 0;  ///< File descriptors.
  int output = 1;
  std::size_t parallel = 1;  ///< Jobs at once.
};

/// Serves until the input ends and all jobs are done. Returns the process's exit code.
/// REQUIRES: the process has one thread, and nothing of CUDA was called.
int serve(const WorkerOptions& options);

}  // namespace plimsoll::plan
