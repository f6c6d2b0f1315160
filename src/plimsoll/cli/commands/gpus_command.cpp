#include <nlohmann/json.hpp>
#include <ostream>

#include "plimsoll/cli/commands/commands.h"
#include "plimsoll/cli/documents.h"
#include "plimsoll/cli/grammar/common_flags.h"
#include "plimsoll/pretend/model/profile.h"
#include "plimsoll/report/fields.h"
#include "plimsoll/report/text/table.h"

namespace plimsoll::cli {
namespace {

using report::Align;

CommandShape gpus_shape() {
  return {.name = "gpus",
          .about = "Lists the GPUs that can be simulated.",
          .options = {json_flag()},
          .footer = "Example:\n  plimsoll gpus"};
}

std::string table_of_gpus(const std::vector<pretend::Profile>& profiles) {
  report::Table table({{"name"},
                       {"memory", Align::kRight},
                       {"compute capability", Align::kRight},
                       {"SMs", Align::kRight},
                       {"device name"}});
  for (const pretend::Profile& profile : profiles) {
    table.add({profile.name, format_bytes(profile.memory),
               std::to_string(profile.compute_major) + "." + std::to_string(profile.compute_minor),
               std::to_string(profile.multiprocessors), profile.device_name});
  }
  return table.render("");
}

std::string gpus_to_json(const std::vector<pretend::Profile>& profiles) {
  auto gpus = nlohmann::ordered_json::array();
  for (const pretend::Profile& profile : profiles) gpus.push_back(nlohmann::ordered_json::parse(to_json(profile)));
  return nlohmann::ordered_json{{"version", report::kDocumentVersion}, {"command", "gpus"}, {"gpus", gpus}}.dump(2) +
         "\n";
}

int run_gpus(const CommandWords& words, const Context& context) {
  const auto json = words.file("--json");
  check_document(json, "--json");
  const std::filesystem::path folder = context.installation.profiles();
  std::vector<pretend::Profile> profiles;
  for (const std::string& name : pretend::profile_names(folder)) {
    profiles.push_back(pretend::find_profile(name, folder));
  }
  if (profiles.empty()) throw InvalidArgument("no GPU profiles in " + folder.string());
  write_document(json, [&] { return gpus_to_json(profiles); }, context.streams);
  if (!json) {
    context.streams.out << table_of_gpus(profiles) << "\nEach GPU is a file in " << folder.string()
                        << " that names its sources. --gpu also takes the path of your own profile.\n";
  }
  return kExitFits;
}

}  // namespace

Command gpus_command() { return {gpus_shape(), run_gpus}; }

}  // namespace plimsoll::cli
