#include <unistd.h>

#include <cstdlib>
#include <iostream>

#include "plimsoll/cli/commands/commands.h"

namespace {

plimsoll::report::Colour colour_of(int descriptor) {
  const char* refused = std::getenv("NO_COLOR");
  const bool wanted = isatty(descriptor) == 1 && (refused == nullptr || *refused == '\0');
  return wanted ? plimsoll::report::Colour::kAlways : plimsoll::report::Colour::kNever;
}

/// PLIMSOLL_BARS wins over the locale: a picture of a report is made without a terminal.
bool is_unicode(int descriptor) {
  const char* wanted = std::getenv("PLIMSOLL_BARS");
  if (wanted != nullptr && *wanted != '\0') return std::string(wanted) == "unicode";
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    const std::string locale = value;
    const bool is_utf8 = locale.find("UTF-8") != std::string::npos || locale.find("utf8") != std::string::npos;
    return is_utf8 && isatty(descriptor) == 1;
  }
  return false;
}

}  // namespace

int main(int count, char** values) {
  const plimsoll::cli::Streams streams{.out = std::cout,
                                       .err = std::cerr,
                                       .out_colour = colour_of(STDOUT_FILENO),
                                       .err_colour = colour_of(STDERR_FILENO),
                                       .out_unicode = is_unicode(STDOUT_FILENO),
                                       .err_unicode = is_unicode(STDERR_FILENO),
                                       .progress = isatty(STDERR_FILENO) == 1};
  return plimsoll::cli::plimsoll_main({values + 1, values + count}, streams);
}
