#pragma once

#include <span>
#include <string>

#include "plimsoll/job/job.h"
#include "plimsoll/job/job_file.h"
#include "plimsoll/job/toml.h"

namespace plimsoll::job {

/// Whether a file has a table of torchtitan's.
bool is_torchtitan(const toml::Value& root);

/// Reads a torchtitan configuration with the names of 2024 or 2025. A missing field has torchtitan's default. `flags`
/// win over the file. If the file has a global batch and no flag sets --grad-accum, the global batch determines it.
///
/// Throws FormatError with the line for a field that torchtitan does not have, with the nearest name, and for settings
/// that `plan` does not support: parallelism other than FSDP2 and HSDP, torch.compile, float8 and others.
JobFile read_torchtitan(const toml::Value& root, const std::string& origin, Job& job, std::span<const Setting> flags);

}  // namespace plimsoll::job
