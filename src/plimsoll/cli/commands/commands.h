#pragma once

#include <string>
#include <vector>

#include "plimsoll/cli/documents.h"
#include "plimsoll/cli/grammar/command_line.h"
#include "plimsoll/cli/installation.h"
#include "plimsoll/cli/planning.h"

namespace plimsoll::cli {

/// The inputs of a command beside its command line.
struct Context {
  const Installation& installation;
  const StartPlanning& start;
  const Streams& streams;
};

/// One command of `plimsoll`.
struct Command {
  CommandShape shape;
  /// Returns an exit code (exit_codes.h). Throws InvalidArgument or FormatError (kExitBadUsage) for wrong input, before
  /// anything is started or written; PlanningFailed (kExitFailed) if the job cannot be run; Interrupted.
  int (*run)(const CommandWords& words, const Context& context);
};

/// All commands, in the order of the help.
std::vector<Command> commands();

/// Runs the command that `arguments` (without the program's name) names. Throws as Command::run does.
int run_command_line(const std::vector<std::string>& arguments, const Context& context);

/// The same for a user: every exception becomes a message and an exit code.
int plimsoll_main(const std::vector<std::string>& arguments, const Streams& streams);

}  // namespace plimsoll::cli
