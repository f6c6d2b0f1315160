#include <unistd.h>

#include <fstream>
#include <ostream>
#include <sstream>

#include "plimsoll/base/errors.h"
#include "plimsoll/base/text.h"
#include "plimsoll/cli/child_record.h"
#include "plimsoll/cli/commands/commands.h"
#include "plimsoll/cli/documents.h"
#include "plimsoll/cli/grammar/common_flags.h"
#include "plimsoll/cli/installation.h"
#include "plimsoll/cli/process/child_process.h"
#include "plimsoll/cli/process/environment.h"
#include "plimsoll/job/fields.h"
#include "plimsoll/job/worker_protocol.h"
#include "plimsoll/report/document.h"
#include "plimsoll/report/text/sections.h"
#include "plimsoll/report/verdict.h"

namespace plimsoll::cli {
namespace {

namespace fs = std::filesystem;

using Takes = OptionShape::Takes;

/// The limit of torch (C10_COMPILE_TIME_MAX_GPUS).
constexpr std::int64_t kMostGpusPerNode = 120;

OptionShape of_the_run(OptionShape option, const std::string& help = "") {
  option.group = "Options";
  if (!help.empty()) option.help = help;
  return option;
}

CommandShape run_shape() {
  return {
      .name = "run",
      .about = "Runs a script on a simulated GPU, and reports the memory of its peak.",
      .details = "Everything after the script, or after `-m module`, belongs to the script.",
      .words = "(script.py | -m module) [ARGUMENTS]",
      .rest_is_script = true,
      .options =
          {of_the_run(job_flag("gpu")),
           of_the_run(job_flag("gpu-memory")),
           {"--gpus-per-node", "N",
            "GPUs in one machine, and GPUs that the script sees (default: 8, or the world size if that is less)"},
           {"--world-size", "N", "ranks of the job (default: 1)"},
           {"--rank", "N", "the rank to run (default: 0)"},
           {"--python", "PATH",
            "the Python interpreter, with a CUDA build of torch and the script's packages (default: Plimsoll's own)"},
           of_the_run(job_flag("alloc-conf")),
           {"--event-lag", "N", "kernel launches until an event completes; 0: at once (default: 0)"},
           {"--steps", "N", "stop the script after N optimizer steps (default: run to the end)"},
           {"--json", "FILE|-",
            "write the JSON document to this file; -: to standard output, and the script's output to standard error",
            Takes::kValue, "Output"},
           {"--snapshot", "FILE", "write torch's memory snapshot to this file, for pytorch.org/memory_viz",
            Takes::kValue, "Output"},
           {"--top", "N", "lines of code to list (default: 10)", Takes::kValue, "Output"},
           {"--depth", "N", "depth of the module table; 0: only the root (default: 2)", Takes::kValue, "Output"},
           {"--explain", "", "list the causes of the peak too", Takes::kNothing, "Output"},
           {"--no-categories", "", "skip the breakdown by category, module and cause", Takes::kNothing, "Output"},
           full_flag(),
           reserve_flag(),
           {"--quiet", "", "print no report", Takes::kNothing, "Output"}},
      .hints = {{{"--gpus", "--nproc-per-node", "--nproc_per_node"},
                 "give --world-size, the number of ranks (and --gpu, the name of the GPU)"},
                {{"--nnodes"}, "give --world-size, the ranks of all nodes together, and --gpus-per-node"}},
      .footer =
          "Examples:\n"
          "  plimsoll run train.py --batch-size 4\n"
          "  plimsoll run --gpu A100-40GB --world-size 64 --rank 3 --steps 2 -m my.package.train --config big.toml\n"
          "  plimsoll run --python ~/venv/bin/python --explain --depth 3 train.py\n"
          "  plimsoll run --gpu-memory 40GiB --json report.json --snapshot memory.pickle train.py\n\n"
          "Exit codes: the script's own; 1 it could not be run, 2 bad usage or input, 3 it does not fit."};
}

/// The script and its arguments, which stand after the options.
void read_script(std::vector<std::string> words, RunOptions& options) {
  if (words.empty()) throw UsageError("no script given: write plimsoll run script.py, or plimsoll run -m module");
  if (words[0].starts_with("-m")) {
    options.is_module = true;
    words[0].erase(0, 2);
    if (words[0].empty()) words.erase(words.begin());
    if (words.empty()) throw UsageError("-m needs the name of a module, as in -m my.package.train");
  }
  options.script = words[0];
  options.arguments.assign(words.begin() + 1, words.end());
}

RunOptions read_run_options(const CommandWords& words) {
  job::Job job;  // Its fields read the flags that a job has too.
  for (const char* name : {"gpu", "gpu-memory", "alloc-conf"}) {
    const job::Field& field = job::find_field(name);
    if (const auto text = words.option(field.flag())) field.set(job, *text);
  }
  RunOptions options{
      .gpu = job.gpu,
      .gpu_memory = job.gpu_memory,
      .gpus_per_node = words.whole("--gpus-per-node", 1, kMostGpusPerNode),
      .world_size = words.whole("--world-size", 1).value_or(1),
      .rank = words.whole("--rank", 0).value_or(0),
      .python = words.option("--python"),
      .alloc_conf = job.alloc_conf,
      .event_lag = words.whole("--event-lag", 0).value_or(0),
      .steps = words.whole("--steps", 1),
      .json = words.file("--json"),
      .snapshot = words.file("--snapshot"),
      .top = words.whole("--top", 1).value_or(10),
      .explain = words.has("--explain"),
      .depth = words.whole("--depth", 0, 64).value_or(2),
      .categories = !words.has("--no-categories"),
      .quiet = words.has("--quiet"),
      .full = words.has("--full") || words.has("--explain") || words.option("--depth") || words.option("--top"),
      .reserve = read_reserve(words),
      .is_module = false,
      .script = "",
      .arguments = {}};
  read_script(words.words, options);
  if (options.rank >= options.world_size) {
    throw InvalidArgument("--rank " + std::to_string(options.rank) + " does not exist: the ranks of --world-size " +
                          std::to_string(options.world_size) + " are 0 to " + std::to_string(options.world_size - 1));
  }
  if (options.explain && !options.categories) {
    throw UsageError("--explain and --no-categories exclude each other: give one of them");
  }
  if (options.snapshot == "-") throw InvalidArgument("--snapshot needs the name of a file: a snapshot is binary");
  return options;
}

/// Only Python knows whether a module exists: see check_usage.
void check_script(const RunOptions& options) {
  if (options.is_module) return;
  std::error_code error;
  const fs::file_status status = fs::status(options.script, error);
  if (!fs::exists(status)) throw InvalidArgument("no such script: " + options.script);
  if (fs::is_directory(status)) {
    throw InvalidArgument(options.script + " is a folder: give a script in it, or -m with the name of a package");
  }
  if (access(options.script.c_str(), R_OK) != 0) {
    throw InvalidArgument("the script " + options.script + " cannot be read");
  }
}

/// Throws the message of a child that did not find the script or module.
void check_usage(const fs::path& record_folder) {
  std::ifstream file(record_folder / "bad_usage", std::ios::binary);
  if (!file) return;
  std::ostringstream message;
  message << file.rdbuf();
  throw InvalidArgument(message.str());
}

bool json_to_stdout(const RunOptions& options) { return options.json == "-"; }

report::Report known_before(const RunOptions& options, const pretend::Profile& profile) {
  report::Report report;
  report.gpu = job::gpu_of(profile);
  report::ScriptRun& run = report.subject.emplace<report::ScriptRun>();
  run.gpus_per_node = cards_per_node(options);
  run.world_size = options.world_size;
  run.rank = options.rank;
  run.script = options.is_module ? "-m " + options.script : options.script;
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

/// Writes the files that the user asked for. A failure is reported, and does not change the exit code: that is the
/// script's.
void write_outputs(const RunOptions& options, const report::Report& report, const fs::path& snapshot,
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
      streams.err
          << "plimsoll: no snapshot was written: the script ended before that, or the temporary folder is full\n";
    }
  } catch (const SystemError& error) {
    streams.err << "plimsoll: " << error.what() << "\n";
  }
}

void print_report(const RunOptions& options, const report::Report& report, const Streams& streams) {
  if (options.quiet) return;
  const bool aside = json_to_stdout(options);
  const report::TextOptions text{.colour = aside ? streams.err_colour : streams.out_colour,
                                 .depth = static_cast<std::size_t>(options.depth),
                                 .full = options.full,
                                 .unicode = aside ? streams.err_unicode : streams.out_unicode,
                                 .top = static_cast<std::size_t>(options.top),
                                 .explain = options.explain};
  (aside ? streams.err : streams.out) << "\n" << report::to_text(report, text) << std::flush;
}

/// Most scripts import more than torch, and Plimsoll's own interpreter does not have it.
void hint_at_python(const RunOptions& options, const report::Report& report, const Streams& streams) {
  const std::optional<report::ScriptError>& error = report.script()->error;
  if (options.python || !error || error->type != "ModuleNotFoundError") return;
  streams.err << "plimsoll: the script needs a package that Plimsoll's own Python does not have. Name the interpreter "
                 "that you train with: plimsoll run --python /path/to/python script.py\n";
}

int run_script(const RunOptions& options, const Context& context) {
  const auto& [installation, start, streams] = context;
  check_script(options);
  const pretend::Profile profile = profile_for(options.gpu, options.gpu_memory, installation);
  if (options.json && !json_to_stdout(options)) check_writable(*options.json, "--json");
  if (options.snapshot) check_writable(*options.snapshot, "--snapshot");
  const Interpreter interpreter = find_interpreter(options.python, installation);

  const TemporaryFolder folder;
  const fs::path records = folder.path() / "records";
  const fs::path profile_file = folder.path() / "profile.json";
  const fs::path snapshot = folder.path() / "snapshot.pickle";
  fs::create_directory(records);
  write_file(profile_file, pretend::to_json(profile));
  const ChildFiles files{
      .library_folder = interpreter.library_folder,
      .libraries = interpreter.libraries,
      .profile = profile_file,
      .settings = settings_for_python(options, records, snapshot, streams.progress && !options.quiet)};
  const ChildExit exit = run_child(command_line(options, interpreter, installation),
                                   child_environment(options, files, current_environment()),
                                   json_to_stdout(options) ? Output::kOurStandardError : Output::kOurs);

  check_usage(records);
  const Records found = read_records(records);
  for (const std::string& complaint : found.complaints) streams.err << "plimsoll: " << complaint << "\n";
  report::Report report = merge(found.records, known_before(options, profile), exit);
  report.verdict = report::verdict_of(report, options.reserve);
  hint_at_python(options, report, streams);
  write_outputs(options, report, snapshot, streams);
  print_report(options, report, streams);
  return report.fits() == false ? kExitDoesNotFit : exit.exit_code;
}

int run_run(const CommandWords& words, const Context& context) { return run_script(read_run_options(words), context); }

}  // namespace

Command run_command() { return {run_shape(), run_run}; }

}  // namespace plimsoll::cli
