#include "plimsoll/architecture/presets.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "plimsoll/architecture/config_json.h"

namespace plimsoll::architecture {

extern const std::string_view kPresetsJson;  // The build writes its source from presets.json.

namespace {

std::vector<Preset> read_presets() {
  std::vector<Preset> read;
  for (const auto& entry : nlohmann::ordered_json::parse(kPresetsJson)) {
    read.push_back({.name = entry.at("name"),
                    .aliases = entry.at("aliases"),
                    .parameters = entry.at("parameters"),
                    .config = entry.at("config").dump()});
  }
  return read;
}

}  // namespace

std::span<const Preset> presets() {
  static const std::vector<Preset> all = read_presets();
  return all;
}

const Preset* find_preset(std::string_view name) {
  std::string wanted(name);
  for (char& c : wanted) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  const auto all = presets();
  const auto found = std::ranges::find_if(all, [&](const Preset& preset) {
    return preset.name == wanted || std::ranges::find(preset.aliases, wanted) != preset.aliases.end();
  });
  return found == all.end() ? nullptr : &*found;
}

Architecture architecture_of(const Preset& preset) { return read_config(preset.config, "preset " + preset.name); }

}  // namespace plimsoll::architecture
