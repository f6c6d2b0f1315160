#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/tracker/fsdp/fsdp_module_stats.h"
#include "plimsoll/tracker/module_stats.h"
#include "plimsoll/tracker/snapshot.h"

/// Snapshots as text.

namespace plimsoll {

enum class Unit { B, KiB, MiB, GiB };
enum class Layout { Plain, Table };

/// "B", "KiB", "MiB", "GiB". Throws for any other, naming these.
Unit parse_unit(std::string_view text);
/// Throws for a value that is none of the enumeration's.
std::string_view name(Unit unit);

struct ModulewiseDisplay {
  /// Modules of a path with more parts than that are left out.
  int depth = 2;
  Unit unit = Unit::B;
  Layout layout = Layout::Plain;
};

/// Devices whose total rounds to nothing in that unit are left out, and categories that nothing in sight is of.
std::string render(const Snapshot& snapshot, Unit unit, Layout layout);

/// In natural order of the names: "layers.2" before "layers.10".
std::string render(const std::vector<ModuleStats>& modules, const ModulewiseDisplay& display);
std::string render(const std::vector<FSDPModuleStats>& modules, const ModulewiseDisplay& display);

/// Whether `a` comes before `b` in that order.
bool natural_less(std::string_view a, std::string_view b);

}  // namespace plimsoll
