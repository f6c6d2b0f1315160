#include "plimsoll/cli/checks.h"

#include <unistd.h>

#include <fstream>
#include <limits>
#include <sstream>

#include "plimsoll/base/errors.h"

namespace plimsoll::cli {
namespace {

namespace fs = std::filesystem;

/// What torch is built for (C10_COMPILE_TIME_MAX_GPUS).
constexpr std::int64_t kMostCards = 120;

void check_range(const char* option, std::int64_t value, std::int64_t least) {
  if (value < least) {
    throw InvalidArgument(std::string(option) + " must be at least " + std::to_string(least) + ", found " +
                          std::to_string(value));
  }
  if (value > std::numeric_limits<int>::max()) {
    throw InvalidArgument(std::string(option) + " is too large: " + std::to_string(value));
  }
}

}  // namespace

void check_numbers(const RunOptions& options) {
  check_range("--world-size", options.world_size, 1);
  if (options.gpus_per_node) {
    check_range("--gpus-per-node", *options.gpus_per_node, 1);
    if (*options.gpus_per_node > kMostCards) {
      throw InvalidArgument("--gpus-per-node is " + std::to_string(*options.gpus_per_node) + ": torch knows at most " +
                            std::to_string(kMostCards) + " GPUs in one machine; for more ranks set --world-size");
    }
  }
  check_range("--rank", options.rank, 0);
  if (options.rank >= options.world_size) {
    throw InvalidArgument("--rank " + std::to_string(options.rank) + " is not a rank of a job of " +
                          std::to_string(options.world_size) + ": ranks go from 0 to " +
                          std::to_string(options.world_size - 1) + "; set --world-size too");
  }
  check_range("--event-lag", options.event_lag, 0);
  check_range("--top", options.top, 1);
  if (options.steps) check_range("--steps", *options.steps, 1);
  if (options.gpu_memory && *options.gpu_memory == 0) throw InvalidArgument("--gpu-memory must be above zero");
  if (options.snapshot && (options.snapshot->empty() || *options.snapshot == "-")) {
    throw InvalidArgument("--snapshot needs the name of a file: a snapshot is not text");
  }
  if (options.json && options.json->empty()) throw InvalidArgument("--json needs the name of a file, or -");
}

void check_script(const RunOptions& options) {
  if (options.is_module) return;
  std::error_code error;
  const fs::file_status status = fs::status(options.script, error);
  if (!fs::exists(status)) throw InvalidArgument("no such script: " + options.script);
  if (fs::is_directory(status)) {
    throw InvalidArgument(options.script + " is a folder: name the script in it, or use -m for a package");
  }
  if (access(options.script.c_str(), R_OK) != 0)
    throw InvalidArgument("the script " + options.script + " cannot be read");
}

void check_usage(const fs::path& record_folder) {
  std::ifstream file(record_folder / "bad_usage", std::ios::binary);
  if (!file) return;
  std::ostringstream message;
  message << file.rdbuf();
  throw InvalidArgument(message.str());
}

}  // namespace plimsoll::cli
