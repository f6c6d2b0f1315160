#pragma once

#include <cstdint>

#include "plimsoll/architecture/architecture.h"
#include "plimsoll/job/job.h"

namespace plimsoll::job {

/// The sequence length of a job: the one given; else 8192, or the model's positions where it learns fewer.
std::int64_t sequence(const Job& job, const architecture::Architecture& architecture);

/// Throws InvalidArgument where the parts of a job contradict each other or the model. The message names the flags, the
/// numbers and what would do.
void check(const Job& job, const architecture::Architecture& architecture);

}  // namespace plimsoll::job
