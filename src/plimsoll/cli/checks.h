#pragma once

#include "plimsoll/cli/options.h"

namespace plimsoll::cli {

/// What is wrong with a run is found before anything is started or written. Each function throws InvalidArgument whose
/// message says what was found and what to do.

/// The numbers: world size, rank, cards, steps, top, event lag, memory.
void check_numbers(const RunOptions& options);

/// The script is a file that can be read. (Whether a module exists, only Python knows.)
void check_script(const RunOptions& options);

}  // namespace plimsoll::cli
