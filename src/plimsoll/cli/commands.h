#pragma once

#include <iosfwd>

#include "plimsoll/cli/installation.h"
#include "plimsoll/cli/options.h"
#include "plimsoll/report/table.h"

namespace plimsoll::cli {

/// Where a command writes. Colour follows from what the streams are.
struct Streams {
  std::ostream& out;
  std::ostream& err;
  report::Colour out_colour = report::Colour::kNever;
  report::Colour err_colour = report::Colour::kNever;
  bool progress = false;  ///< standard error is a terminal
};

constexpr int kExitBadUsage = 2;
constexpr int kExitOutOfMemory = 3;

/// `plimsoll run`: checks everything, runs the script, reports. Returns the exit code: the script's own; 3 when it ran
/// out of memory. Throws InvalidArgument or FormatError (exit code 2) before anything is started.
int run_command(const RunOptions& options, const Installation& installation, const Streams& streams);

/// `plimsoll gpus`: lists the profiles.
int gpus_command(const Installation& installation, const Streams& streams);

/// The whole command line, without the program's name. Throws nothing.
int plimsoll_main(const std::vector<std::string>& arguments, const Streams& streams);

}  // namespace plimsoll::cli
