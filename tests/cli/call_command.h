#pragma once

#include <sstream>
#include <string>
#include <vector>

#include "plimsoll/base/errors.h"
#include "plimsoll/cli/commands/commands.h"

/// The result of a command line.
struct Called {
  int exit_code = 0;
  std::string out;
  std::string err;
};

/// Runs a command line as the program does, up to the exceptions that the program turns into messages.
inline Called call(const std::vector<std::string>& arguments, const plimsoll::cli::Installation& installation,
                   const plimsoll::cli::StartPlanning& start) {
  std::ostringstream out;
  std::ostringstream err;
  const plimsoll::cli::Streams streams{.out = out, .err = err};
  const int exit_code = plimsoll::cli::run_command_line(arguments, {installation, start, streams});
  return {exit_code, out.str(), err.str()};
}

/// A command that plans nothing.
inline Called call(const std::vector<std::string>& arguments) {
  return call(arguments, {PLIMSOLL_SOURCE_DIR, "/nowhere"}, {});
}

/// The message with which a command line is refused before anything starts.
inline std::string refusal_of(const std::vector<std::string>& arguments) {
  try {
    call(arguments);
  } catch (const plimsoll::InvalidArgument& error) {
    return error.what();
  }
  return "(not refused)";
}
