#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "plimsoll/base/bytes.h"
#include "plimsoll/cli/installation.h"
#include "plimsoll/pretend/model/profile.h"

namespace plimsoll::cli {

/// The card that --gpu names (a profile of `installation`, or a file), with the memory of --gpu-memory instead of its
/// own. Throws InvalidArgument that suggests the nearest names, or where memory does not even hold a process's context;
/// FormatError for a file that is no profile.
pretend::Profile profile_for(const std::string& gpu, std::optional<Bytes> memory, const Installation& installation);

/// The file that the profile of `gpu` is in. REQUIRES: profile_for(gpu, …) holds.
std::filesystem::path profile_file(const std::string& gpu, const Installation& installation);

}  // namespace plimsoll::cli
