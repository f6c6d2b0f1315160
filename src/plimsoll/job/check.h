#pragma once

#include <cstdint>

#include "plimsoll/architecture/architecture.h"
#include "plimsoll/job/job.h"

namespace plimsoll::job {

/// The sequence length of a job: the one given; else 8192, or the model's positions where it learns fewer.
std::int64_t sequence(const Job& job, const architecture::Architecture& architecture);

/// More are nowhere, and what is made for each rank would fill the machine.
inline constexpr std::int64_t kMostGpus = std::int64_t{1} << 20;

/// Whether FSDP2 holds the parameters. Offloading is FSDP2's too: one GPU that offloads is a mesh of one.
bool is_sharded(const Job& job);

/// Throws InvalidArgument where the parts of a job contradict each other or the model. The message names the flags, the
/// numbers and what would do.
void check(const Job& job, const architecture::Architecture& architecture);

}  // namespace plimsoll::job
