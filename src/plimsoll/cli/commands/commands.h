#pragma once

#include <string>
#include <vector>

#include "plimsoll/cli/installation.h"
#include "plimsoll/cli/options.h"
#include "plimsoll/cli/planning.h"
#include "plimsoll/cli/streams.h"

namespace plimsoll::cli {

constexpr int kExitFailed = 1;
constexpr int kExitBadUsage = 2;
constexpr int kExitOutOfMemory = 3;  ///< Or: does not fit, nothing fits.

/// `plimsoll run`: checks everything, runs the script, reports. Returns the exit code: the script's own; 3 when it ran
/// out of memory. Throws InvalidArgument or FormatError (exit code 2) before anything is started.
int run_command(const RunOptions& options, const Installation& installation, const Streams& streams);

/// The commands that plan. Each throws InvalidArgument or FormatError (exit code 2) for what is wrong with the job,
/// before anything is started; PlanningFailed (1) where it cannot be run or written; Interrupted.

/// `plimsoll plan`: 0 it fits, 3 it does not.
int plan_command(const PlanOptions& options, const Installation& installation, const StartPlanning& start,
                 const Streams& streams);
/// `plimsoll explain`: the same.
int explain_command(const ExplainOptions& options, const Installation& installation, const StartPlanning& start,
                    const Streams& streams);
/// `plimsoll fit`: 0 there is a limit, 3 nothing fits.
int fit_command(const FitOptions& options, const Installation& installation, const StartPlanning& start,
                const Streams& streams);
/// `plimsoll sweep`: 0 one at least fits, 3 none does, 1 not one could be run.
int sweep_command(const SweepOptions& options, const Installation& installation, const StartPlanning& start,
                  const Streams& streams);

/// `plimsoll compare`: 0.
int compare_command(const CompareOptions& options, const Streams& streams);
/// `plimsoll models`: lists the presets, or prints the config of one.
int models_command(const ModelsOptions& options, const Streams& streams);
/// `plimsoll gpus`: lists the profiles.
int gpus_command(const Installation& installation, const Streams& streams);

/// The whole command line, without the program's name. Throws nothing.
int plimsoll_main(const std::vector<std::string>& arguments, const Streams& streams);

}  // namespace plimsoll::cli
