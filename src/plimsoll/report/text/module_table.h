#pragma once

#include <string>
#include <vector>

#include "plimsoll/report/attribution.h"
#include "plimsoll/report/text/amounts.h"

namespace plimsoll::report {

/// The parts of a module's path: 0 for the root, 2 for "layers.0".
std::size_t depth_of(const std::string& module);

/// The peak by module down to `depth`, under a heading, after an empty line; "" without modules. The first of
/// `categories`, which are the peak's, largest first, have their own columns, as many as fit into 120 characters. Equal
/// blocks share a row.
std::string module_table(const std::vector<ModuleRow>& modules, std::vector<CategoryBytes> categories,
                         std::size_t depth, const Amounts& amounts);

}  // namespace plimsoll::report
