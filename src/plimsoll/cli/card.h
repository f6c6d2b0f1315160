#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "plimsoll/base/bytes.h"
#include "plimsoll/cli/installation.h"
#include "plimsoll/pretend/model/profile.h"
#include "plimsoll/report/run_report.h"

namespace plimsoll::cli {

/// The card that --gpu names (a profile of `installation`, or a file), with the memory of --gpu-memory instead of its
/// own. Throws InvalidArgument that suggests the nearest names, or where memory does not even hold a process's context;
/// FormatError for a file that is no profile.
pretend::Profile profile_for(const std::string& gpu, std::optional<Bytes> memory, const Installation& installation);

/// The file that the profile of `gpu` is in. REQUIRES: profile_for(gpu, …) holds.
std::filesystem::path profile_file(const std::string& gpu, const Installation& installation);

/// As reports show a card.
report::Gpu gpu_of(const pretend::Profile& profile);

}  // namespace plimsoll::cli
