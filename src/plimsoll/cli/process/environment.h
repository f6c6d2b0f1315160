#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "plimsoll/cli/process/child_process.h"
#include "plimsoll/cli/run_options.h"

namespace plimsoll::cli {

/// Where a rank stands in its job, as torchrun would place it: nodes are filled one after the other.
struct Placement {
  std::int64_t local_rank = 0;
  std::int64_t local_world_size = 1;  ///< ranks on this node; the last node may have fewer
  std::int64_t node = 0;
  std::int64_t nodes = 1;
};

/// REQUIRES: check_numbers(options) holds.
Placement placement(const RunOptions& options);

/// The cards of a node: 8 where the user does not say.
std::int64_t cards_per_node(const RunOptions& options);

/// The cards that the child sees: those of its node, and where the user does not say how many, not more than there are
/// ranks.
std::int64_t card_count(const RunOptions& options);

/// What the child's environment refers to.
struct ChildFiles {
  std::filesystem::path library_folder;
  std::vector<std::filesystem::path> libraries;  ///< to preload, in this order
  std::filesystem::path profile;
  std::string settings;  ///< PLIMSOLL_RUN
};

/// The environment of the Python that runs the script: `parent`'s, with torchrun's variables for this rank and what the
/// pretend GPU needs. The user's own LD_PRELOAD comes after ours.
Environment child_environment(const RunOptions& options, const ChildFiles& files, Environment parent);

}  // namespace plimsoll::cli
