#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "plimsoll/base/bytes.h"
#include "plimsoll/cli/installation.h"
#include "plimsoll/pretend/model/profile.h"

namespace plimsoll::cli {

/// The profile that --gpu names, from `installation` or a file, with the memory of --gpu-memory if that is given.
/// Throws InvalidArgument with the nearest names for an unknown GPU, and for less memory than a process's context
/// needs; FormatError for a file that is not a profile.
pretend::Profile profile_for(const std::string& gpu, std::optional<Bytes> memory, const Installation& installation);

/// The file of that profile. REQUIRES: profile_for(gpu, …) does not throw.
std::filesystem::path profile_file(const std::string& gpu, const Installation& installation);

}  // namespace plimsoll::cli
