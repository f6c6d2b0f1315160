#pragma once

#include <cstdint>

#include "plimsoll/architecture/architecture.h"
#include "plimsoll/job/job.h"

namespace plimsoll::job {

/// The sequence length of a job. The default is 8192, or the model's limit if it learns fewer positions.
std::int64_t sequence(const Job& job, const architecture::Architecture& architecture);

/// More GPUs than any cluster has; the data of each rank must fit in this machine's memory.
inline constexpr std::int64_t kMostGpus = std::int64_t{1} << 20;

/// Whether FSDP2 shards the parameters. Offloading needs FSDP2 too: one GPU is then a mesh of one.
bool is_sharded(const Job& job);

/// Throws InvalidArgument if the fields of a job contradict each other or the model. The message names the flags, their
/// values and valid ones.
void check(const Job& job, const architecture::Architecture& architecture);

}  // namespace plimsoll::job
