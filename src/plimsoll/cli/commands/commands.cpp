#include "plimsoll/cli/commands/commands.h"

#include <algorithm>
#include <ostream>

#include "plimsoll/base/errors.h"
#include "plimsoll/base/text.h"
#include "plimsoll/cli/planning.h"

// The list of commands. To add one, write commands/NAME_command.cpp, which defines `Command NAME_command()` with the
// flags, the help and the run of the command, and add its line here.
#define PLIMSOLL_COMMANDS(command)                                                                         \
  command(plan) command(explain) command(fit) command(sweep) command(compare) command(run) command(models) \
      command(gpus) command(schema)

namespace plimsoll::cli {

#define PLIMSOLL_DECLARE(name) Command name##_command();
PLIMSOLL_COMMANDS(PLIMSOLL_DECLARE)
#undef PLIMSOLL_DECLARE

std::vector<Command> commands() {
  return {
#define PLIMSOLL_CALL(name) name##_command(),
      PLIMSOLL_COMMANDS(PLIMSOLL_CALL)
#undef PLIMSOLL_CALL
  };
}

namespace {

constexpr const char* kAbout =
    "Tells whether a training job fits on a GPU, and where every byte goes. Plimsoll runs the job on\n"
    "GPUs that it simulates: no GPU is needed.";

constexpr const char* kMainExample =
    "Examples:\n"
    "  plimsoll plan llama3-8b --gpus 8\n"
    "  plimsoll fit llama3-8b --gpus 8 --checkpoint selective --maximize batch\n"
    "  plimsoll run --gpu H100-80GB train.py\n"
    "  plimsoll plan --help\n\n"
    "Exit codes: 0 it fits (run: the script's own), 1 it could not be run, 2 bad usage or input, 3 it does not fit.\n";

std::string main_help(const std::vector<Command>& all) {
  constexpr std::size_t kNameWidth = 10;
  std::string text = std::string(kAbout) + "\n\nUsage: plimsoll COMMAND [OPTIONS]\n\nCommands:\n";
  for (const Command& command : all) {
    const std::string& name = command.shape.name;
    text += "  " + name + std::string(kNameWidth - name.size(), ' ') + command.shape.about + "\n";
  }
  return text + "\nOptions:\n  --version   print the version\n  -h, --help  print this help\n\n" + kMainExample;
}

[[noreturn]] void refuse_command(const std::string& word, const std::vector<Command>& all) {
  std::vector<std::string> names;
  std::string joined;
  for (const Command& command : all) {
    names.push_back(command.shape.name);
    joined += (joined.empty() ? "" : ", ") + command.shape.name;
  }
  if (word.empty()) throw UsageError("no command given. Commands: " + joined);
  if (word.starts_with("-")) {
    throw UsageError("unknown option " + in_quotes(word) + ": the command comes first, as in plimsoll plan");
  }
  const std::string meant = did_you_mean(word, names);
  throw UsageError("unknown command " + in_quotes(word) + (meant.empty() ? ". " : ": " + meant + " ") +
                   "Commands: " + joined);
}

}  // namespace

int run_command_line(const std::vector<std::string>& arguments, const Context& context) {
  const std::vector<Command> all = commands();
  const std::string first = arguments.empty() ? "" : arguments[0];
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Command& command) { return command.shape.name == first; });
  if (found != all.end()) {
    const CommandWords words = parse_words(found->shape, {arguments.begin() + 1, arguments.end()});
    if (!words.help) return found->run(words, context);
    context.streams.out << help_text(found->shape);
  } else if (first == "--version") {
    context.streams.out << "plimsoll " << version() << "\n";
  } else if (first == "--help" || first == "-h") {
    context.streams.out << main_help(all);
  } else {
    refuse_command(first, all);
  }
  return kExitFits;
}

int plimsoll_main(const std::vector<std::string>& arguments, const Streams& streams) {
  const std::string name = arguments.empty() ? "" : arguments[0];
  const auto fail = [&](const std::string& message, int exit_code) {
    streams.err << "plimsoll: " << message << "\n";
    return exit_code;
  };
  try {
    const Installation installation = find_installation();
    const StartPlanning start = [&](std::size_t processes) -> std::unique_ptr<Planning> {
      return std::make_unique<Planner>(find_planner(installation), processes);
    };
    const int exit_code = run_command_line(arguments, {installation, start, streams});
    // A full disk behind a redirection is a failure. The exit code of `run` is the script's, whatever happens.
    if (name != "run" && !streams.out.flush()) return fail("cannot write to standard output", kExitFailed);
    return exit_code;
  } catch (const Interrupted& interrupted) {
    return 128 + interrupted.signal;
  } catch (const UsageError& error) {
    const auto all = commands();
    const bool known =
        std::any_of(all.begin(), all.end(), [&](const Command& command) { return command.shape.name == name; });
    return fail(error.what() + std::string("\nSee plimsoll ") + (known ? name + " " : "") + "--help.", kExitBadUsage);
  } catch (const InvalidArgument& error) {
    return fail(error.what(), kExitBadUsage);
  } catch (const FormatError& error) {
    return fail(error.what(), kExitBadUsage);
  } catch (const InternalError& error) {
    return fail(std::string("a bug in plimsoll: ") + error.what(), kExitFailed);
  } catch (const std::exception& error) {
    return fail(error.what(), kExitFailed);
  }
}

}  // namespace plimsoll::cli
