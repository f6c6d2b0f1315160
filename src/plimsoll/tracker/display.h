#pragma once

#include <string>
#include <vector>

#include "plimsoll/base/bytes.h"
#include "plimsoll/tracker/module_stats.h"
#include "plimsoll/tracker/snapshot.h"

/// Snapshots as text.

namespace plimsoll::inline tracker {

enum class Layout { kPlain, kTable };

struct ModulewiseDisplay {
  int depth = 2;  ///< The maximum number of parts of a path; other modules are left out.
  ByteUnit unit = ByteUnit::kB;
  Layout layout = Layout::kPlain;
};

/// Leaves out devices with a total that rounds to zero in this unit, and categories without bytes.
std::string render(const Snapshot& snapshot, ByteUnit unit, Layout layout);

/// In natural order of the names: "layers.2" before "layers.10".
std::string render(const std::vector<ModuleStats>& modules, const ModulewiseDisplay& display);
std::string render(const std::vector<FSDPModuleStats>& modules, const ModulewiseDisplay& display);

}  // namespace plimsoll::inline tracker
