#pragma once

#include <string>

#include "plimsoll/cli/options.h"

namespace plimsoll::cli {

/// What is said of each command in the list of them, and at the top of its own help.
inline constexpr const char* kPlanAbout = "Says whether a training job fits a GPU, and where every byte goes.";
inline constexpr const char* kExplainAbout = "The peak cause by cause, and which single change saves how much.";
inline constexpr const char* kFitAbout = "Finds the largest batch, the longest sequence or the fewest GPUs that fit.";
inline constexpr const char* kSweepAbout = "Plans every combination of several values, and lists them in a table.";
inline constexpr const char* kCompareAbout = "Shows two reports side by side, and what differs.";
inline constexpr const char* kRunAbout = "Runs a script on the pretend GPU and reports its memory.";
inline constexpr const char* kModelsAbout = "Lists the models that are known by name, or prints the config of one.";
inline constexpr const char* kGpusAbout = "Lists the cards that can be pretended.";

/// The answer to a command line that makes no sense: exit code 2, and where help is. `command` may be empty.
Answer bad_usage(const std::string& message, const std::string& command);

}  // namespace plimsoll::cli
