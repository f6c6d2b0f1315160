#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "plimsoll/base/bytes.h"
#include "plimsoll/cli/process/child_process.h"

namespace plimsoll::cli {

/// The options of `plimsoll run`.
struct RunOptions {
  std::string gpu = "H100-80GB";
  std::optional<Bytes> gpu_memory;            ///< Instead of the profile's.
  std::optional<std::int64_t> gpus_per_node;  ///< See Placement and card_count.
  std::int64_t world_size = 1;
  std::int64_t rank = 0;
  std::optional<std::string> python;  ///< A path, or a name on PATH.
  std::optional<std::string> alloc_conf;
  std::int64_t event_lag = 0;
  std::optional<std::int64_t> steps;
  std::optional<std::string> json;  ///< "-": standard output.
  std::optional<std::string> snapshot;
  std::int64_t top = 10;
  bool explain = false;    ///< Report the causes of the peak too.
  std::int64_t depth = 2;  ///< Of the module table.
  bool categories = true;  ///< Record category, module and cause of live bytes.
  bool quiet = false;
  bool full = false;  ///< All tables, not the short report.
  Bytes reserve = 0;  ///< Memory that the verdict holds back.

  bool is_module = false;              ///< `-m module`, like Python's.
  std::string script;                  ///< The file, or the module's name.
  std::vector<std::string> arguments;  ///< The script's own, unchanged.
};

/// The value of PLIMSOLL_RUN: the settings for the Python code that runs the script. It leaves its records in the
/// folder `records`, and writes `snapshot` if the options ask for one.
std::string settings_for_python(const RunOptions& options, const std::filesystem::path& records,
                                const std::filesystem::path& snapshot, bool progress);

/// The place of a rank in its job, as with torchrun: ranks fill one node after the other.
struct Placement {
  std::int64_t local_rank = 0;
  std::int64_t local_world_size = 1;  ///< Ranks on this node; the last node may have fewer.
  std::int64_t node = 0;
  std::int64_t nodes = 1;
};

/// REQUIRES: rank < world_size.
Placement placement(const RunOptions& options);

/// The GPUs of a node; 8 by default.
std::int64_t cards_per_node(const RunOptions& options);

/// The GPUs that the child sees: those of its node. By default not more than the job has ranks.
std::int64_t card_count(const RunOptions& options);

/// Files and settings that the child's environment names.
struct ChildFiles {
  std::filesystem::path library_folder;
  std::vector<std::filesystem::path> libraries;  ///< To preload, in this order.
  std::filesystem::path profile;
  std::string settings;  ///< PLIMSOLL_RUN
};

/// The environment of the Python process that runs the script: that of `parent`, torchrun's variables for this rank,
/// and the variables of the pretend GPU. The user's LD_PRELOAD comes after ours.
Environment child_environment(const RunOptions& options, const ChildFiles& files, Environment parent);

}  // namespace plimsoll::cli
