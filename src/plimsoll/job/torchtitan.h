#pragma once

#include <span>
#include <string>

#include "plimsoll/job/job.h"
#include "plimsoll/job/job_file.h"
#include "plimsoll/job/toml.h"

namespace plimsoll::job {

/// Whether a file has one of torchtitan's tables.
bool is_torchtitan(const toml::Value& root);

/// Reads a configuration of torchtitan, with the names of 2024 and of 2025. Fields that it lacks are what they are by
/// default there. Then `flags`; then, where the file gives a global batch and no flag gives --grad-accum, how often
/// gradients are accumulated follows from it.
///
/// Throws FormatError with the line for fields that torchtitan does not have, with the nearest it has, and for what
/// cannot be planned here: parallelism other than FSDP2 and HSDP, torch.compile, float8 and the like.
JobFile read_torchtitan(const toml::Value& root, const std::string& origin, Job& job, std::span<const Setting> flags);

}  // namespace plimsoll::job
