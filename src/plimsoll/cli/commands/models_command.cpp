#include <nlohmann/json.hpp>
#include <ostream>

#include "plimsoll/architecture/presets.h"
#include "plimsoll/base/errors.h"
#include "plimsoll/base/nearest.h"
#include "plimsoll/cli/commands/commands.h"
#include "plimsoll/job/model.h"
#include "plimsoll/job/values.h"
#include "plimsoll/report/text/amounts.h"

namespace plimsoll::cli {
namespace {

using architecture::Architecture;
using architecture::Preset;
using report::Align;

/// The config as one would save it, to edit it.
std::string config_of(const std::string& name) {
  const Preset* preset = architecture::find_preset(name);
  if (preset != nullptr) return nlohmann::ordered_json::parse(preset->config).dump(2) + "\n";
  std::vector<std::string> names;
  for (const Preset& known : architecture::presets()) names.push_back(known.name);
  const std::string meant = did_you_mean(name, names);
  throw InvalidArgument("no config is known for " + job::in_quotes(name) + ": " + (meant.empty() ? "" : meant + " ") +
                        "`plimsoll models` lists all");
}

std::string table_of_presets() {
  report::Table table({{"name"},
                       {"family"},
                       {"parameters", Align::kRight},
                       {"exactly", Align::kRight},
                       {"blocks", Align::kRight},
                       {"dim", Align::kRight},
                       {"heads/kv", Align::kRight},
                       {"vocabulary", Align::kRight},
                       {"experts"}});
  for (const Preset& preset : architecture::presets()) {
    const Architecture model = architecture::architecture_of(preset);
    table.add({std::string(preset.name), std::string(architecture::name(model.family)),
               report::parameter_count(static_cast<std::uint64_t>(preset.parameters)),
               std::to_string(preset.parameters), std::to_string(model.blocks), std::to_string(model.dim),
               std::to_string(model.heads) + "/" + std::to_string(model.kv_heads), std::to_string(model.vocabulary),
               model.experts ? std::to_string(model.experts->per_token) + " of " + std::to_string(model.experts->count)
                             : ""});
  }
  return table.render("");
}

}  // namespace

int models_command(const ModelsOptions& options, const Streams& streams) {
  if (options.name) {
    streams.out << config_of(*options.name) << std::flush;
    return 0;
  }
  streams.out << table_of_presets()
              << "\n`plimsoll models NAME` prints the config.json of one; a config.json of your own is taken too.\n";
  return 0;
}

}  // namespace plimsoll::cli
