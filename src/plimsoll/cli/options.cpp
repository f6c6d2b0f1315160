#include "plimsoll/cli/options.h"

#include <array>

#include "plimsoll/base/nearest.h"
#include "plimsoll/cli/command_line.h"
#include "plimsoll/cli/job_options.h"
#include "plimsoll/cli/run_options.h"
#include "plimsoll/cli/usage.h"
#include "plimsoll/job/values.h"

namespace plimsoll::cli {
namespace {

using Arguments = std::vector<std::string>;

constexpr int kBadUsage = 2;

constexpr const char* kAbout =
    "Says whether a training job fits a GPU, before anyone rents it: runs it on GPUs that are not there, and tells "
    "where\n"
    "every byte goes.";

constexpr const char* kMainExample =
    "Examples:\n"
    "  plimsoll plan llama3-8b --gpus 8\n"
    "  plimsoll fit llama3-8b --gpus 8 --checkpoint selective --maximize batch\n"
    "  plimsoll run --gpu H100-80GB train.py\n"
    "  plimsoll plan --help\n";

Command parse_gpus(const Arguments& arguments) {
  const auto parsed = parse_words(
      {.name = "gpus", .about = kGpusAbout, .words = "", .options = {}, .footer = "Example:\n  plimsoll gpus"},
      arguments);
  if (const auto* answer = std::get_if<Answer>(&parsed)) return *answer;
  return GpusOptions{};
}

Command parse_models(const Arguments& arguments) {
  const auto parsed = parse_words({.name = "models",
                                   .about = kModelsAbout,
                                   .words = "[NAME]",
                                   .most_words = 1,
                                   .options = {},
                                   .footer = "Examples:\n"
                                             "  plimsoll models\n"
                                             "  plimsoll models llama3-8b > config.json    # to edit, and plan with\n"
                                             "  plimsoll plan ./config.json"},
                                  arguments);
  if (const auto* answer = std::get_if<Answer>(&parsed)) return *answer;
  const auto& words = std::get<CommandWords>(parsed).words;
  return ModelsOptions{words.empty() ? std::nullopt : std::optional(words[0])};
}

struct CommandEntry {
  const char* name;
  const char* about;
  Command (*parse)(const Arguments&);
};
// Each reads its own words: a script of `run` may be called "gpus" too.
constexpr std::array kCommands{CommandEntry{"plan", kPlanAbout, parse_plan},
                               CommandEntry{"explain", kExplainAbout, parse_explain},
                               CommandEntry{"fit", kFitAbout, parse_fit},
                               CommandEntry{"sweep", kSweepAbout, parse_sweep},
                               CommandEntry{"compare", kCompareAbout, parse_compare},
                               CommandEntry{"run", kRunAbout, parse_run},
                               CommandEntry{"models", kModelsAbout, parse_models},
                               CommandEntry{"gpus", kGpusAbout, parse_gpus}};

std::vector<std::string> command_names() {
  std::vector<std::string> names;
  for (const CommandEntry& entry : kCommands) names.emplace_back(entry.name);
  return names;
}

std::string main_help() {
  constexpr std::size_t kNameWidth = 10;
  std::string text = std::string(kAbout) + "\n\nUsage: plimsoll COMMAND [OPTIONS]\n\nCommands:\n";
  for (const CommandEntry& entry : kCommands) {
    const std::string name = entry.name;
    text += "  " + name + std::string(kNameWidth - name.size(), ' ') + entry.about + "\n";
  }
  return text + "\nOptions:\n  --version   Print the version.\n  -h, --help  Print this help.\n\n" + kMainExample;
}

}  // namespace

Answer bad_usage(const std::string& message, const std::string& command) {
  return {kBadUsage, "plimsoll: " + message + "\nSee plimsoll " + command + (command.empty() ? "" : " ") + "--help.\n"};
}

Command parse_command_line(const Arguments& arguments, const std::string& version) {
  const std::vector<std::string> names = command_names();
  std::string joined;
  for (const std::string& name : names) joined += (joined.empty() ? "" : ", ") + name;
  if (arguments.empty()) return bad_usage("no command given: commands are " + joined, "");
  const std::string& first = arguments[0];
  for (const CommandEntry& entry : kCommands) {
    if (first == entry.name) return entry.parse({arguments.begin() + 1, arguments.end()});
  }
  if (first == "--version") return Answer{0, "plimsoll " + version + "\n"};
  if (first == "--help" || first == "-h") return Answer{0, main_help()};
  if (first.starts_with("-")) {
    return bad_usage("unknown option " + job::in_quotes(first) + ": a command comes first, as in plimsoll plan", "");
  }
  const std::string meant = did_you_mean(first, names);
  return bad_usage(
      "unknown command " + job::in_quotes(first) + ": " + (meant.empty() ? "" : meant + " ") + "Commands are " + joined,
      "");
}

}  // namespace plimsoll::cli
