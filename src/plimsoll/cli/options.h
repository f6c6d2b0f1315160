#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "plimsoll/base/bytes.h"

namespace plimsoll::cli {

/// `plimsoll run`, as the user wrote it. Numbers are not checked yet: see checks.h.
struct RunOptions {
  std::string gpu = "H100-80GB";
  std::optional<Bytes> gpu_memory;  ///< instead of the profile's
  std::int64_t gpus_per_node = 8;
  std::int64_t world_size = 1;
  std::int64_t rank = 0;
  std::optional<std::string> python;  ///< a path, or a name on PATH
  std::optional<std::string> alloc_conf;
  std::int64_t event_lag = 0;
  std::optional<std::int64_t> steps;
  std::optional<std::string> json;  ///< "-": standard output
  std::optional<std::string> snapshot;
  std::int64_t top = 10;
  bool quiet = false;

  bool is_module = false;              ///< `-m module`, as Python's
  std::string script;                  ///< the file, or the module's name
  std::vector<std::string> arguments;  ///< the script's own, untouched
};

/// `plimsoll gpus`.
struct GpusOptions {};

/// The command line is answered already: help, the version, or what is wrong with it.
struct Answer {
  int exit_code = 0;
  std::string text;  ///< for standard output where exit_code is 0, else for standard error
};

using Command = std::variant<RunOptions, GpusOptions, Answer>;

/// Reads a command line, without the program's name. Never throws for what the user wrote: that becomes an Answer.
Command parse_command_line(const std::vector<std::string>& arguments, const std::string& version);

}  // namespace plimsoll::cli
