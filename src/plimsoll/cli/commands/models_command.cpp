#include <nlohmann/json.hpp>
#include <ostream>

#include "plimsoll/architecture/architecture.h"
#include "plimsoll/base/text.h"
#include "plimsoll/cli/commands/commands.h"
#include "plimsoll/cli/documents.h"
#include "plimsoll/cli/grammar/common_flags.h"
#include "plimsoll/job/values.h"
#include "plimsoll/report/fields.h"
#include "plimsoll/report/text/amounts.h"
#include "plimsoll/report/text/table.h"

namespace plimsoll::cli {
namespace {

using architecture::Architecture;
using architecture::Preset;
using report::Align;

CommandShape models_shape() {
  return {.name = "models",
          .about = "Lists the models that are known by name, or prints the config.json of one.",
          .words = "[NAME]",
          .most_words = 1,
          .options = {json_flag()},
          .footer =
              "Examples:\n"
              "  plimsoll models\n"
              "  plimsoll models llama3-8b > config.json    # edit it, then:\n"
              "  plimsoll plan ./config.json"};
}

/// Indented, for people to edit.
std::string config_of(const std::string& name) {
  const Preset* preset = architecture::find_preset(name);
  if (preset != nullptr) return nlohmann::ordered_json::parse(preset->config).dump(2) + "\n";
  std::vector<std::string> names;
  for (const Preset& known : architecture::presets()) names.push_back(known.name);
  const std::string meant = did_you_mean(name, names);
  throw InvalidArgument("unknown model " + in_quotes(name) + ": " + (meant.empty() ? "" : meant + " ") +
                        "`plimsoll models` lists the known models");
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
                       {"experts"},
                       {"also called"}});
  for (const Preset& preset : architecture::presets()) {
    const Architecture model = architecture::architecture_of(preset);
    table.add(
        {preset.name, std::string(architecture::name(model.family)),
         report::parameter_count(static_cast<std::uint64_t>(preset.parameters)), std::to_string(preset.parameters),
         std::to_string(model.blocks), std::to_string(model.dim),
         std::to_string(model.heads) + "/" + std::to_string(model.kv_heads), std::to_string(model.vocabulary),
         model.experts ? std::to_string(model.experts->per_token) + " of " + std::to_string(model.experts->count) : "",
         job::listed(preset.aliases, ", ")});
  }
  return table.render("");
}

std::string presets_to_json() {
  auto models = nlohmann::ordered_json::array();
  for (const Preset& preset : architecture::presets()) {
    const Architecture model = architecture::architecture_of(preset);
    models.push_back({{"name", preset.name},
                      {"aliases", preset.aliases},
                      {"family", architecture::name(model.family)},
                      {"parameters", preset.parameters},
                      {"blocks", model.blocks},
                      {"dim", model.dim},
                      {"heads", model.heads},
                      {"kv_heads", model.kv_heads},
                      {"vocabulary", model.vocabulary},
                      {"experts", model.experts ? model.experts->count : 0},
                      {"experts_per_token", model.experts ? model.experts->per_token : 0},
                      {"config", nlohmann::ordered_json::parse(preset.config)}});
  }
  return nlohmann::ordered_json{{"version", report::kDocumentVersion}, {"command", "models"}, {"models", models}}.dump(
             2) +
         "\n";
}

int run_models(const CommandWords& words, const Context& context) {
  const Streams& streams = context.streams;
  const auto json = words.file("--json");
  check_document(json, "--json");
  if (!words.words.empty()) {
    if (json) throw UsageError("--json lists all models, and does not go with a NAME");
    streams.out << config_of(words.words[0]) << std::flush;
    return kExitFits;
  }
  write_document(json, presets_to_json, streams);
  if (!json) {
    streams.out
        << table_of_presets()
        << "\n`plimsoll models NAME` prints the config.json of a model. MODEL may also be your own config.json.\n";
  }
  return kExitFits;
}

}  // namespace

Command models_command() { return {models_shape(), run_models}; }

}  // namespace plimsoll::cli
