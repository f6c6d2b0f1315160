#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace plimsoll::cli {

using Environment = std::map<std::string, std::string>;

/// The environment of this process.
Environment current_environment();

/// How a process ended.
struct ChildExit {
  int exit_code = 0;          ///< 128 + n if signal n ended the process.
  std::optional<int> signal;  ///< The signal that ended the process.
};

/// The target of a child's standard output.
enum class Output { kOurs, kOurStandardError };

/// Starts `arguments[0]` (a path) with exactly this environment and waits for its end. The child shares our standard
/// input and error. SIGINT, SIGTERM, SIGHUP and SIGQUIT do not end us meanwhile, but go to the child. (A terminal sends
/// its signals to the child itself, because both are in one process group.)
/// Throws SystemError if the program cannot be started. Not reentrant: one child at a time.
/// REQUIRES: !arguments.empty().
ChildExit run_child(const std::vector<std::string>& arguments, const Environment& environment,
                    Output output = Output::kOurs);

/// The end and the standard output of a process.
struct Captured {
  ChildExit exit;
  std::string output;
};
/// Runs a program from PATH. It shares our standard error.
Captured capture_child(const std::vector<std::string>& arguments);

}  // namespace plimsoll::cli
