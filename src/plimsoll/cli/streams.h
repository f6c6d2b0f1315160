#pragma once

#include <iosfwd>

#include "plimsoll/report/text/table.h"

namespace plimsoll::cli {

/// The output streams of a command.
struct Streams {
  std::ostream& out;
  std::ostream& err;
  report::Colour out_colour = report::Colour::kNever;
  report::Colour err_colour = report::Colour::kNever;
  bool out_unicode = false;  ///< Standard output is a terminal of UTF-8.
  bool err_unicode = false;
  bool progress = false;  ///< Standard error is a terminal.
};

}  // namespace plimsoll::cli
