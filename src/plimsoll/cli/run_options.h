#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plimsoll/base/bytes.h"

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

}  // namespace plimsoll::cli
