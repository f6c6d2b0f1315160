#pragma once

#include <string>
#include <vector>

#include "plimsoll/cli/options.h"

namespace plimsoll::cli {

/// The commands that plan jobs. Each is the options of its own kind, or an Answer. The flags of a job come from
/// job::fields(), as text: what they mean is found out with the job file beside them (jobs.h).
Command parse_plan(const std::vector<std::string>& arguments);
Command parse_explain(const std::vector<std::string>& arguments);
Command parse_fit(const std::vector<std::string>& arguments);
Command parse_sweep(const std::vector<std::string>& arguments);

/// The one that reads what they wrote.
Command parse_compare(const std::vector<std::string>& arguments);

}  // namespace plimsoll::cli
