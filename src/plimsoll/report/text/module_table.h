#pragma once

#include <string>
#include <vector>

#include "plimsoll/report/attribution.h"
#include "plimsoll/report/text/amounts.h"

namespace plimsoll::report {

/// The parts of a module's path: 0 for the root, 2 for "layers.0".
std::size_t depth_of(const std::string& module);

/// Where the peak's bytes are, module by module to `depth`, under a heading, after an empty line; "" without modules.
/// `categories` are those of the peak, largest first: the first have columns of their own, as many as 120 columns have
/// room for. Blocks that are alike share a row.
std::string module_table(const std::vector<ModuleRow>& modules, std::vector<CategoryBytes> categories,
                         std::size_t depth, const Amounts& amounts);

}  // namespace plimsoll::report
