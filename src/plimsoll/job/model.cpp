#include "plimsoll/job/model.h"

#include <filesystem>
#include <vector>

#include "plimsoll/architecture/architecture.h"
#include "plimsoll/architecture/config_json.h"
#include "plimsoll/base/errors.h"
#include "plimsoll/base/text.h"
#include "plimsoll/job/values.h"

namespace plimsoll::job {

namespace fs = std::filesystem;

bool is_path(const std::string& model) { return model.find('/') != std::string::npos || model.ends_with(".json"); }

bool is_model_name(const std::string& model) { return architecture::find_preset(model) != nullptr; }

architecture::Architecture find_model(const std::string& model) {
  if (const auto* preset = architecture::find_preset(model)) return architecture::architecture_of(*preset);
  std::error_code error;
  if (fs::is_directory(model, error)) {
    const fs::path config = fs::path(model) / "config.json";
    if (!fs::exists(config, error)) {
      throw InvalidArgument(model + " is a folder without a config.json: give a model's folder or its config");
    }
    return architecture::read_config_file(config);
  }
  if (is_path(model) && !model.ends_with(".json") && !fs::exists(model, error)) {
    throw InvalidArgument("no such file: " + model +
                          ": Plimsoll does not download models. Give the path of its config.json, or a name "
                          "from `plimsoll models`");
  }
  if (is_path(model) || fs::exists(model, error)) return architecture::read_config_file(model);
  std::vector<std::string> names;
  for (const auto& preset : architecture::presets()) {
    names.push_back(preset.name);
    names.insert(names.end(), preset.aliases.begin(), preset.aliases.end());
  }
  const std::string meant = did_you_mean(model, names, 4);
  throw InvalidArgument("unknown model " + in_quotes(model) + "; " + (meant.empty() ? "" : meant + " ") +
                        "`plimsoll models` lists the known names. The path of a config.json, or of a folder with one, "
                        "is accepted too");
}

}  // namespace plimsoll::job
