#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "plimsoll/architecture/architecture.h"

namespace plimsoll::architecture {

/// A public model, by the name people call it.
struct Preset {
  std::string_view name;
  std::int64_t parameters;  ///< As published, to the parameter; tied ones once.
  std::string_view config;  ///< Its config.json.
};

std::span<const Preset> presets();
/// Null where there is none of that name.
const Preset* find_preset(std::string_view name);
Architecture architecture_of(const Preset& preset);

}  // namespace plimsoll::architecture
