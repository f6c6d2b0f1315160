#pragma once

#include <string>

#include "plimsoll/architecture/architecture.h"
#include "plimsoll/architecture/presets.h"

namespace plimsoll::job {

/// Whether `model` is written as a path: it has a '/' or ends in .json.
bool is_path(const std::string& model);

/// The preset of that name, or of another name that people call it by (llama3-405b); case does not matter. Null: none.
const architecture::Preset* find_preset(const std::string& name);

/// Whether `model` is the name of a preset, or another name of one (llama3-405b); case does not matter.
bool is_model_name(const std::string& model);

/// The model that a job names: a preset, the path of a config.json, or a folder with one.
/// Throws InvalidArgument that suggests the nearest presets for an unknown name, and as read_config_file does.
architecture::Architecture find_model(const std::string& model);

}  // namespace plimsoll::job
