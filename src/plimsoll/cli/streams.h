#pragma once

#include <iosfwd>

#include "plimsoll/report/text/table.h"

namespace plimsoll::cli {

/// Where a command writes. Colour follows from what the streams are.
struct Streams {
  std::ostream& out;
  std::ostream& err;
  report::Colour out_colour = report::Colour::kNever;
  report::Colour err_colour = report::Colour::kNever;
  bool progress = false;  ///< standard error is a terminal
};

}  // namespace plimsoll::cli
