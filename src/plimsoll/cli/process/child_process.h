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
  int exit_code = 0;          ///< 128 + n where signal n ended it
  std::optional<int> signal;  ///< that ended it
};

/// Where a child's standard output goes.
enum class Output { kOurs, kOurStandardError };

/// Starts `arguments[0]` (a path) with exactly this environment and waits for its end. Standard input and error are
/// ours. SIGINT, SIGTERM, SIGHUP and SIGQUIT that reach us meanwhile are passed on, and do not end us; those of the
/// terminal reach the child by themselves, since it is of our process group.
/// Throws SystemError if the program cannot be started. Not reentrant: one child at a time.
/// REQUIRES: !arguments.empty().
ChildExit run_child(const std::vector<std::string>& arguments, const Environment& environment,
                    Output output = Output::kOurs);

/// Runs a program found on PATH and returns what it wrote to standard output. Standard error is ours.
struct Captured {
  ChildExit exit;
  std::string output;
};
Captured capture_child(const std::vector<std::string>& arguments);

}  // namespace plimsoll::cli
