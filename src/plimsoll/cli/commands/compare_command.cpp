#include <fstream>
#include <ostream>
#include <sstream>

#include "plimsoll/base/errors.h"
#include "plimsoll/cli/commands/commands.h"
#include "plimsoll/cli/documents.h"
#include "plimsoll/cli/grammar/common_flags.h"
#include "plimsoll/report/comparison.h"
#include "plimsoll/report/document.h"

namespace plimsoll::cli {
namespace {

namespace fs = std::filesystem;

CommandShape compare_shape() {
  return {.name = "compare",
          .about = "Shows two reports side by side, and their differences.",
          .words = "A.json B.json",
          .most_words = 2,
          .options = {depth_flag(), units_flag(), json_flag(), quiet_flag()},
          .footer =
              "Example:\n"
              "  plimsoll plan llama3-8b --json a.json\n"
              "  plimsoll plan llama3-8b --checkpoint full --json b.json\n"
              "  plimsoll compare a.json b.json"};
}

report::NamedReport read_document(const std::string& file) {
  std::error_code error;
  if (!fs::exists(file, error)) throw InvalidArgument("no such document: " + file);
  if (fs::is_directory(file, error)) throw InvalidArgument(file + " is a folder: name a document in it");
  std::ifstream stream(file, std::ios::binary);
  // A larger document is refused, so the rest need not be read.
  std::string text(report::kMostDocumentBytes + 1, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!stream && stream.gcount() == 0 && !stream.eof()) throw InvalidArgument("cannot read the document " + file);
  text.resize(static_cast<std::size_t>(stream.gcount()));
  return {.name = file, .report = report::report_from_json(text, file)};
}

int run_compare(const CommandWords& words, const Context& context) {
  const Streams& streams = context.streams;
  const ReportOptions options = read_report_options(words);
  if (words.words.size() < 2) {
    throw UsageError("compare needs two documents: write them with --json of `plimsoll plan` or `plimsoll run`");
  }
  check_document(options.json, "--json");
  const report::Comparison comparison = report::compare(read_document(words.words[0]), read_document(words.words[1]));
  write_document(options.json, [&] { return report::to_json(comparison); }, streams);
  const bool aside = goes_to_stdout(options.json);
  text_stream(streams, aside) << report::to_text(comparison, text_options(options, streams, aside)) << std::flush;
  return kExitFits;
}

}  // namespace

Command compare_command() { return {compare_shape(), run_compare}; }

}  // namespace plimsoll::cli
