#include <fstream>
#include <ostream>

#include "plimsoll/base/errors.h"
#include "plimsoll/cli/card.h"
#include "plimsoll/cli/checks.h"
#include "plimsoll/cli/child_record.h"
#include "plimsoll/cli/commands/commands.h"
#include "plimsoll/cli/output_file.h"
#include "plimsoll/cli/process/child_process.h"
#include "plimsoll/cli/process/environment.h"
#include "plimsoll/report/gpu_of.h"
#include "plimsoll/report/run_report.h"

namespace plimsoll::cli {
namespace {

namespace fs = std::filesystem;

bool json_to_stdout(const RunOptions& options) { return options.json == "-"; }

report::RunReport known_before(const RunOptions& options, const pretend::Profile& profile) {
  report::RunReport report;
  report.gpu = plimsoll::report::gpu_of(profile);
  report.gpus_per_node = static_cast<int>(cards_per_node(options));
  report.world_size = static_cast<int>(options.world_size);
  report.rank = static_cast<int>(options.rank);
  report.script = options.is_module ? "-m " + options.script : options.script;
  return report;
}

std::vector<std::string> command_line(const RunOptions& options, const Interpreter& interpreter,
                                      const Installation& installation) {
  std::vector<std::string> arguments{interpreter.python.string(), installation.runner().string()};
  if (options.is_module) arguments.emplace_back("-m");
  arguments.push_back(options.script);
  arguments.insert(arguments.end(), options.arguments.begin(), options.arguments.end());
  return arguments;
}

/// The files that were asked for. What goes wrong now is said, but is not worth the script's exit code.
void write_outputs(const RunOptions& options, const report::RunReport& report, const fs::path& snapshot,
                   const Streams& streams) {
  try {
    if (json_to_stdout(options)) {
      streams.out << report::to_json(report) << std::flush;
    } else if (options.json) {
      write_file(*options.json, report::to_json(report));
    }
    if (!options.snapshot) return;
    std::error_code error;
    if (fs::exists(snapshot, error)) {
      move_into_place(snapshot, *options.snapshot);
    } else {
      streams.err << "plimsoll: there is no snapshot: the script ended before one could be taken\n";
    }
  } catch (const InvalidArgument& error) {
    streams.err << "plimsoll: " << error.what() << "\n";
  }
}

void print_report(const RunOptions& options, const report::RunReport& report, const Streams& streams) {
  if (options.quiet) return;
  const bool aside = json_to_stdout(options);
  const report::TextOptions text{.colour = aside ? streams.err_colour : streams.out_colour,
                                 .top = static_cast<std::size_t>(options.top),
                                 .depth = static_cast<std::size_t>(options.depth),
                                 .explain = options.explain};
  (aside ? streams.err : streams.out) << "\n" << report::to_text(report, text) << std::flush;
}

}  // namespace

int run_command(const RunOptions& options, const Installation& installation, const Streams& streams) {
  check_numbers(options);
  check_script(options);
  const pretend::Profile profile = profile_for(options.gpu, options.gpu_memory, installation);
  if (options.json && !json_to_stdout(options)) check_writable(*options.json, "--json");
  if (options.snapshot) check_writable(*options.snapshot, "--snapshot");
  const Interpreter interpreter = find_interpreter(options, installation);

  const TemporaryFolder folder;
  const fs::path records = folder.path() / "records";
  const fs::path profile_file = folder.path() / "profile.json";
  const fs::path snapshot = folder.path() / "snapshot.pickle";
  fs::create_directory(records);
  write_file(profile_file, pretend::to_json(profile));
  const RunSettings settings{.record_folder = records,
                             .steps = options.steps,
                             .top = options.top,
                             .snapshot = options.snapshot ? std::optional(snapshot) : std::nullopt,
                             .progress = streams.progress && !options.quiet,
                             .categories = options.categories,
                             .depth = options.depth};
  const ChildFiles files{.library_folder = interpreter.library_folder,
                         .libraries = interpreter.libraries,
                         .profile = profile_file,
                         .settings = to_json(settings)};
  const ChildExit exit = run_child(command_line(options, interpreter, installation),
                                   child_environment(options, files, current_environment()),
                                   json_to_stdout(options) ? Output::kOurStandardError : Output::kOurs);

  check_usage(records);
  const Records found = read_records(records);
  for (const std::string& complaint : found.complaints) streams.err << "plimsoll: " << complaint << "\n";
  const report::RunReport report = merge(found.records, known_before(options, profile), exit);
  write_outputs(options, report, snapshot, streams);
  print_report(options, report, streams);
  return report.out_of_memory() ? kExitOutOfMemory : report.exit_code;
}

}  // namespace plimsoll::cli
