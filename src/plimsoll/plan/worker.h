#pragma once

#include <cstddef>
#include <functional>

namespace plimsoll::plan {

/// A process that runs jobs for another one; job/worker_protocol.h has the protocol. It loads torch, does not touch
/// CUDA, and forks for each job. So a job needs no start of a program, and gets an unused card and allocator.
///
/// If memory runs out, the job is run again on a larger card. The report is of that run, and its `oom` of the first
/// one.
struct WorkerOptions {
  int input = 0;  ///< File descriptors.
  int output = 1;
  std::size_t parallel = 1;  ///< Jobs at once.
};

/// Serves until the input ends and all jobs are done. Returns the process's exit code.
/// REQUIRES: the process has one thread, and nothing of CUDA was called.
int serve(const WorkerOptions& options);

}  // namespace plimsoll::plan
