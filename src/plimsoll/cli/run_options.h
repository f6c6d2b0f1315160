#pragma once

#include <string>
#include <vector>

#include "plimsoll/cli/options.h"

namespace plimsoll::cli {

/// `plimsoll run`: RunOptions, or an Answer.
Command parse_run(const std::vector<std::string>& arguments);

}  // namespace plimsoll::cli
