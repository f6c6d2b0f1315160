#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plimsoll/report/report.h"
#include "plimsoll/report/text/options.h"

/// The limit of one setting: the largest batch that fits, the fewest GPUs.
namespace plimsoll::report {

struct FitProbe {
  std::int64_t value = 0;
  bool fits = false;
};

struct Fit {
  enum class Direction { kMaximize, kMinimize };

  std::string what;  ///< The setting: "batch", "seq-len", "gpus".
  Direction direction = Direction::kMaximize;
  std::string model;
  Gpu gpu;
  /// The last value that fits, and the job there; absent where none that was tried does.
  std::optional<std::int64_t> limit;
  std::optional<Report> at_limit;
  /// The next value, which does not fit, and the job there. Absent where the search ended before it met one.
  std::optional<std::int64_t> beyond;
  std::optional<Report> at_beyond;
  std::int64_t step = 1;         ///< Only multiples of it were tried near the limit.
  bool is_models_limit = false;  ///< The model itself allows nothing larger than `limit`.
  std::vector<FitProbe> probes;  ///< In the order in which they were tried.
  std::string note;              ///< What a reader must know of the search; may be empty.
};

/// The limit first, then what binds there, the two jobs side by side, and what was tried.
std::string to_text(const Fit& fit, const TextOptions& options = {});

/// What stands in the way beyond the limit.
struct FitBinding {
  std::string book;          ///< The first that alone exceeds the card: "active", "reserved", "device"; "" for none.
  std::string category;      ///< That grew most from the limit on; without a limit the largest.
  Bytes category_bytes = 0;  ///< By so much it grew, or so large it is.
  std::string phase;
  std::string module;
};

/// Absent where nothing beyond the limit is known.
std::optional<FitBinding> binding_of(const Fit& fit);

}  // namespace plimsoll::report
