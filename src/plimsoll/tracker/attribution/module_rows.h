#pragma once

#include <map>
#include <string>
#include <vector>

#include "plimsoll/report/attribution.h"
#include "plimsoll/tracker/attribution/user_paths.h"
#include "plimsoll/tracker/mem_tracker.h"

namespace plimsoll::inline tracker {

using BytesByCategory = std::map<std::string, Bytes>;

/// The categories that have bytes, largest first.
std::vector<report::CategoryBytes> largest_first(const BytesByCategory& categories);

/// A row for each module down to `depth` that has parameters or ran, with the bytes of the module and all below it.
/// Then a row for each group of modules that are sharded together, and for each other owner. `highest` has,
/// by path, the peaks of the modules that ran.
std::vector<report::ModuleRow> module_rows(const ModuleTree& tree, const UserPaths& paths,
                                           const std::vector<LiveTensor>& alive,
                                           const std::map<std::string, Bytes>& highest, int depth);

}  // namespace plimsoll::inline tracker
