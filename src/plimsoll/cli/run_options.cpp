#include "plimsoll/cli/run_options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <optional>
#include <sstream>

#include "plimsoll/base/errors.h"
#include "plimsoll/cli/usage.h"
#include "plimsoll/job/values.h"

namespace plimsoll::cli {
namespace {

constexpr const char* kRunExample =
    "Examples:\n"
    "  plimsoll run train.py --batch-size 4\n"
    "  plimsoll run --gpu A100-40GB --world-size 64 --rank 3 --steps 2 -m my.package.train --config big.toml\n"
    "  plimsoll run --explain --depth 3 train.py\n"
    "  plimsoll run --gpu-memory 40GiB --json report.json --snapshot memory.pickle train.py\n"
    "\n"
    "Everything after the script (or after `-m module`) belongs to the script.\n"
    "Exit codes: the script's own; 3 when it ran out of memory; 2 for bad usage.";

/// CLI11 does not know of the script, which is what it leaves over.
class RunFormatter : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App*, std::string) const override {
    return "Usage: plimsoll run [OPTIONS] (script.py | -m module) [arguments...]\n";
  }
};

/// What means something else than CLI11 would make of it.
struct AsWritten {
  std::string gpu_memory;
  std::string depth = "2";
  bool no_categories = false;
};

void add_run_options(CLI::App& run, RunOptions& options, AsWritten& written) {
  run.add_option("--gpu", options.gpu, "the card: a name of `plimsoll gpus`, or a profile of your own (a .json file)")
      ->capture_default_str();
  run.add_option("--gpu-memory", written.gpu_memory, "the card's memory instead of the profile's, as in 40GiB");
  run.add_option("--gpus-per-node", options.gpus_per_node,
                 "cards in one machine, and so many the script sees (default: 8, and not more than there are ranks)");
  run.add_option("--world-size", options.world_size, "ranks of the job")->capture_default_str();
  run.add_option("--rank", options.rank, "the rank to run")->capture_default_str();
  run.add_option("--python", options.python, "an interpreter that has a CUDA build of torch (default: plimsoll's own)");
  run.add_option("--alloc-conf", options.alloc_conf, "PYTORCH_ALLOC_CONF, as in expandable_segments:True");
  run.add_option("--event-lag", options.event_lag, "launches until an event completes; 0: at once")
      ->capture_default_str();
  run.add_option("--steps", options.steps, "end the run after this many optimizer steps");
  run.add_option(
      "--json", options.json,
      "write the report as JSON to this file; -: to standard output, and what the script prints to standard error");
  run.add_option("--snapshot", options.snapshot, "write torch's memory snapshot to this file (for memory_viz)");
  run.add_option("--top", options.top, "lines of code to list")->capture_default_str();
  run.add_option("--depth", written.depth, "list modules of so many parts of a path; 0: the root alone")
      ->type_name("INT")
      ->capture_default_str();
  run.add_flag("--explain", options.explain, "say of the peak, cause by cause, why its memory was there");
  run.add_flag("--no-categories", written.no_categories,
               "do not look whose the memory of the peak is: no categories, modules and causes");
  run.add_flag("--quiet", options.quiet, "print no report");
}

/// Where the options of `app` end: the first word that is neither one of them nor the value of one. What follows is not
/// shown to CLI11, which would look for options in it.
std::size_t end_of_options(const CLI::App& app, const std::vector<std::string>& arguments) {
  std::size_t at = 0;
  while (at < arguments.size()) {
    const std::size_t equals = arguments[at].find('=');
    const CLI::Option* option = app.get_option_no_throw(arguments[at].substr(0, equals));
    if (option == nullptr || !arguments[at].starts_with("-")) break;
    at += option->get_expected_min() > 0 && equals == std::string::npos ? 2 : 1;
  }
  return std::min(at, arguments.size());
}

/// Takes what the options left over apart: the script and what belongs to it.
void take_script(std::vector<std::string> rest, RunOptions& options) {
  if (!rest.empty() && rest.front() == "--") rest.erase(rest.begin());
  if (rest.empty()) throw InvalidArgument("no script given: write plimsoll run script.py, or plimsoll run -m module");
  std::string first = rest.front();
  rest.erase(rest.begin());
  if (first == "-m") {
    if (rest.empty()) throw InvalidArgument("-m needs the name of a module, as in -m my.package.train");
    options.is_module = true;
    first = rest.front();
    rest.erase(rest.begin());
  } else if (first.starts_with("-m") && first.size() > 2) {
    options.is_module = true;
    first.erase(0, 2);
  } else if (first.size() > 1 && first.starts_with("-")) {
    throw InvalidArgument("unknown option " + first + " (the script's own options go after the script)");
  }
  options.script = first;
  options.arguments = std::move(rest);
}

/// Parses with `app` and returns the answer where that is all there is to do: help, the version, or a complaint.
std::optional<Answer> parse(CLI::App& app, const std::vector<std::string>& arguments, const std::string& command) {
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());  // the order that CLI11 asks for
  try {
    app.parse(reversed);
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) return bad_usage(error.what(), command);
    std::ostringstream text;
    app.exit(error, text, text);
    return Answer{0, text.str()};
  }
}

}  // namespace

Command parse_run(const std::vector<std::string>& arguments) {
  RunOptions options;
  AsWritten written;
  CLI::App app(kRunAbout, "plimsoll run");
  app.formatter(std::make_shared<RunFormatter>());
  app.footer(kRunExample);
  add_run_options(app, options, written);
  const auto script = arguments.begin() + static_cast<std::ptrdiff_t>(end_of_options(app, arguments));
  if (const auto answer = parse(app, {arguments.begin(), script}, "run")) return *answer;
  try {
    take_script({script, arguments.end()}, options);
    if (!written.gpu_memory.empty()) options.gpu_memory = parse_bytes(written.gpu_memory);
    options.depth = job::parse_whole("--depth", written.depth, 0, 64);
    options.categories = !written.no_categories;
    if (options.explain && !options.categories) {
      throw InvalidArgument("--explain needs the categories that --no-categories leaves out: give one of the two");
    }
  } catch (const InvalidArgument& error) {
    return bad_usage(error.what(), "run");
  }
  return options;
}

}  // namespace plimsoll::cli
