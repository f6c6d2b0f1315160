#pragma once

#include <string>
#include <vector>

#include "plimsoll/cli/documents.h"
#include "plimsoll/cli/grammar/command_line.h"
#include "plimsoll/cli/installation.h"
#include "plimsoll/cli/planning.h"

namespace plimsoll::cli {

/// All exit codes of the command, except those of signals (128 + the signal's number). `plimsoll run` ends with the
/// script's own code, unless the job did not fit or could not be run. A script may use the same codes, so the document
/// has the reason too. python/plimsoll/api/exit_codes.py has the same table.
inline constexpr int kExitFits = 0;
inline constexpr int kExitFailed = 1;            ///< It could not be run, or its answer could not be written.
inline constexpr int kExitBadUsage = 2;          ///< Wrong command line, or wrong input.
inline constexpr int kExitDoesNotFit = 3;        ///< It was run and needs more memory than the GPU has.
inline constexpr int kExitRanksDiffer = 4;       ///< Reserved: the ranks of a job do not match.
inline constexpr int kExitGrewPastBaseline = 5;  ///< Reserved: a peak is higher than a baseline allows.

/// The inputs of a command beside its command line.
struct Context {
  const Installation& installation;
  const StartPlanning& start;
  const Streams& streams;
};

/// One command of `plimsoll`.
struct Command {
  CommandShape shape;
  /// Returns an exit code. Throws InvalidArgument or FormatError (kExitBadUsage) for wrong input, before
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
