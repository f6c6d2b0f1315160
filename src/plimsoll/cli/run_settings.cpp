#include "plimsoll/cli/run_settings.h"

#include <nlohmann/json.hpp>

namespace plimsoll::cli {

std::string to_json(const RunSettings& settings) {
  nlohmann::ordered_json json;
  json["record_dir"] = settings.record_folder.string();
  json["steps"] = settings.steps ? nlohmann::ordered_json(*settings.steps) : nullptr;
  json["top"] = settings.top;
  json["snapshot"] = settings.snapshot ? nlohmann::ordered_json(settings.snapshot->string()) : nullptr;
  json["progress"] = settings.progress;
  json["categories"] = settings.categories;
  json["depth"] = settings.depth;
  json["main_pid"] = nullptr;
  return json.dump();
}

}  // namespace plimsoll::cli
