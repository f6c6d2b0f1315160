#pragma once

#include <string>

#include "plimsoll/architecture/architecture.h"

namespace plimsoll::job {

/// Whether `model` looks like a path: it contains '/' or ends in .json.
bool is_path(const std::string& model);

/// Whether `model` is the name or an alias of a preset.
bool is_model_name(const std::string& model);

/// The model that a job names: a preset, the path of a config.json, or the path of a folder that has one.
/// Throws InvalidArgument for an unknown name, with the nearest presets; and as read_config_file.
architecture::Architecture find_model(const std::string& model);

}  // namespace plimsoll::job
