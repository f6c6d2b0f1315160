#include "plimsoll/cli/commands.h"

#include <ostream>

#include "plimsoll/base/errors.h"
#include "plimsoll/pretend/model/profile.h"

namespace plimsoll::cli {

int gpus_command(const Installation& installation, const Streams& streams) {
  report::Table table({{"name"},
                       {"memory", report::Align::kRight},
                       {"compute capability", report::Align::kRight},
                       {"SMs", report::Align::kRight},
                       {"reported as"}});
  for (const std::string& name : pretend::profile_names(installation.profiles())) {
    const pretend::Profile profile = pretend::find_profile(name, installation.profiles());
    table.add({profile.name, format_bytes(profile.memory),
               std::to_string(profile.compute_major) + "." + std::to_string(profile.compute_minor),
               std::to_string(profile.multiprocessors), profile.device_name});
  }
  if (table.empty()) throw InvalidArgument("no GPU profiles in " + installation.profiles().string());
  streams.out << table.render("") << "\nEach is a file with its sources in " << installation.profiles().string()
              << "; --gpu takes a file of your own too.\n";
  return 0;
}

int plimsoll_main(const std::vector<std::string>& arguments, const Streams& streams) {
  try {
    const Command command = parse_command_line(arguments, version());
    if (const auto* answer = std::get_if<Answer>(&command)) {
      (answer->exit_code == 0 ? streams.out : streams.err) << answer->text;
      return answer->exit_code;
    }
    const Installation installation = find_installation();
    if (const auto* run = std::get_if<RunOptions>(&command)) return run_command(*run, installation, streams);
    return gpus_command(installation, streams);
  } catch (const InternalError& error) {
    streams.err << "plimsoll: a bug in plimsoll: " << error.what() << "\n";
    return 70;
  } catch (const std::exception& error) {
    streams.err << "plimsoll: " << error.what() << "\n";
    return kExitBadUsage;
  }
}

}  // namespace plimsoll::cli
