#pragma once

#include <filesystem>

#include "plimsoll/cli/options.h"

namespace plimsoll::cli {

/// What is wrong with a run is found before anything is started or written. Each function throws InvalidArgument whose
/// message says what was found and what to do.

/// The numbers: world size, rank, cards, steps, top, event lag, memory.
void check_numbers(const RunOptions& options);

/// The script is a file that can be read. (Whether a module exists, only Python knows: check_usage.)
void check_script(const RunOptions& options);

/// After the child's end: it found what it was to run, or left word in the folder of its records that it did not.
void check_usage(const std::filesystem::path& record_folder);

}  // namespace plimsoll::cli
