#pragma once

#include <cstddef>
#include <optional>

#include "plimsoll/report/text/amounts.h"
#include "plimsoll/report/text/table.h"

namespace plimsoll::report {

/// How a report is rendered for people.
struct TextOptions {
  Colour colour = Colour::kNever;
  std::size_t depth = 2;              ///< Parts in the path of a module: "layers.0" has two.
  std::optional<ByteUnit> unit = {};  ///< Absent: for each number the largest unit that fits.
  bool quiet = false;                 ///< Only the verdict.
  bool full = true;                   ///< All tables, not the short report.
  bool unicode = false;               ///< Bars of block characters, not of ASCII.
  std::size_t top = 10;               ///< Lines of code to list.
  bool explain = false;               ///< The causes of the peak too.
};

}  // namespace plimsoll::report
