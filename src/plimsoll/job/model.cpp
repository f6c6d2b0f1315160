#include "plimsoll/job/model.h"

#include <filesystem>
#include <string_view>
#include <vector>

#include "plimsoll/architecture/config_json.h"
#include "plimsoll/architecture/presets.h"
#include "plimsoll/base/errors.h"
#include "plimsoll/base/nearest.h"
#include "plimsoll/job/values.h"

namespace plimsoll::job {
namespace {

namespace fs = std::filesystem;

/// What people call a preset too.
struct Alias {
  std::string_view name;
  std::string_view preset;
};
constexpr Alias kAliases[] = {{"llama3-405b", "llama3.1-405b"},  {"llama3.3-70b", "llama3.1-70b"},
                              {"qwen2-0.5b", "qwen2.5-0.5b"},    {"qwen2-1.5b", "qwen2.5-1.5b"},
                              {"qwen2-7b", "qwen2.5-7b"},        {"qwen2-72b", "qwen2.5-72b"},
                              {"mistral-7b", "mistral-7b-v0.3"}, {"mistral-7b-v0.2", "mistral-7b-v0.1"}};

}  // namespace

const architecture::Preset* find_preset(const std::string& name) {
  std::string wanted = lower(name);
  for (const Alias& alias : kAliases) {
    if (wanted == alias.name) wanted = alias.preset;
  }
  return architecture::find_preset(wanted);
}

bool is_path(const std::string& model) { return model.find('/') != std::string::npos || model.ends_with(".json"); }

bool is_model_name(const std::string& model) { return find_preset(model) != nullptr; }

architecture::Architecture find_model(const std::string& model) {
  if (const auto* preset = find_preset(model)) return architecture::architecture_of(*preset);
  std::error_code error;
  if (fs::is_directory(model, error)) {
    const fs::path config = fs::path(model) / "config.json";
    if (!fs::exists(config, error)) {
      throw InvalidArgument(model + " is a folder without a config.json: give a model's folder or its config");
    }
    return architecture::read_config_file(config);
  }
  if (is_path(model) && !model.ends_with(".json") && !fs::exists(model, error)) {
    throw InvalidArgument("there is no " + model +
                          ": models are not fetched from anywhere; give the path of its config.json, or one of "
                          "the names that `plimsoll models` lists");
  }
  if (is_path(model) || fs::exists(model, error)) return architecture::read_config_file(model);
  std::vector<std::string> names;
  for (const auto& preset : architecture::presets()) names.emplace_back(preset.name);
  for (const Alias& alias : kAliases) names.emplace_back(alias.name);
  const std::string meant = did_you_mean(model, names, 4);
  throw InvalidArgument("unknown model " + in_quotes(model) + "; " + (meant.empty() ? "" : meant + " ") +
                        "The path of a config.json, or of a folder with one, is taken too. Known: " + listed(names));
}

}  // namespace plimsoll::job
