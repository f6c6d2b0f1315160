#include "plimsoll/cli/documents.h"

#include <ostream>

#include "plimsoll/base/errors.h"
#include "plimsoll/cli/output_file.h"
#include "plimsoll/cli/planning.h"

namespace plimsoll::cli {

bool goes_to_stdout(const std::optional<std::string>& file) { return file == "-"; }

void check_document(const std::optional<std::string>& file, const std::string& option) {
  if (file && !goes_to_stdout(file)) check_writable(*file, option);
}

void check_binary(const std::optional<std::string>& file, const std::string& option) {
  if (goes_to_stdout(file)) throw InvalidArgument(option + " needs the name of a file: it is not text");
  check_document(file, option);
}

void write_document(const std::optional<std::string>& file, const std::function<std::string()>& text,
                    const Streams& streams) {
  if (!file) return;
  if (goes_to_stdout(file)) {
    streams.out << text() << std::flush;
    return;
  }
  write_file(*file, text());
}

report::TextOptions text_options(const ReportOptions& options, const Streams& streams, bool aside) {
  return {.colour = aside ? streams.err_colour : streams.out_colour,
          .depth = static_cast<std::size_t>(options.depth),
          .unit = options.unit,
          .quiet = options.quiet,
          .full = options.full,
          .unicode = aside ? streams.err_unicode : streams.out_unicode};
}

std::ostream& text_stream(const Streams& streams, bool aside) { return aside ? streams.err : streams.out; }

}  // namespace plimsoll::cli
