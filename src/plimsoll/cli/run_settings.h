#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace plimsoll::cli {

/// What `plimsoll run` asks of the Python code that runs the script.
struct RunSettings {
  std::filesystem::path record_folder;
  std::optional<std::int64_t> steps = {};
  std::int64_t top = 10;
  std::optional<std::filesystem::path> snapshot = {};
  bool progress = false;
  bool categories = true;  ///< Attribute the peak.
  std::int64_t depth = 2;  ///< Parts in the path of a module.
};

/// The value of PLIMSOLL_RUN.
std::string to_json(const RunSettings& settings);

}  // namespace plimsoll::cli
