#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/architecture/architecture.h"

namespace plimsoll::architecture {

/// A public model. presets.json has them all; the build embeds it.
struct Preset {
  std::string name;
  std::vector<std::string> aliases;
  std::int64_t parameters;  ///< The published number, exact. Tied parameters count once.
  std::string config;       ///< Its config.json, without fields that do not change the shape.
};

std::span<const Preset> presets();
/// Finds a preset by its name or an alias; case does not matter. Null if no preset has the name.
const Preset* find_preset(std::string_view name);
Architecture architecture_of(const Preset& preset);

}  // namespace plimsoll::architecture
