#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/report/attribution.h"
#include "plimsoll/tracker/attribution/user_paths.h"
#include "plimsoll/tracker/mem_tracker.h"

namespace plimsoll::inline tracker {

/// Category, module and cause of each byte at the peak of the device, with user-facing paths; module rows down to
/// `depth`. Empty for a device that held nothing.
///
/// The peak by line of code comes from the allocator's own history, which `plimsoll run` replays in Python (DESIGN.md,
/// section 11).
report::Attribution attribution(MemTracker& tracker, std::string_view device, const ModuleTree& tree, int depth);

/// A row for each module down to `depth` that has parameters or ran, with the bytes of the module and all below it.
/// Then a row for each group of modules that are sharded together, and for each other owner. `highest` has,
/// by path, the peaks of the modules that ran.
std::vector<report::ModuleRow> module_rows(const ModuleTree& tree, const UserPaths& paths,
                                           const std::vector<LiveTensor>& alive,
                                           const std::map<std::string, Bytes>& highest, int depth);

}  // namespace plimsoll::inline tracker
