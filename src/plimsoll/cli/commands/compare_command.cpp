#include <fstream>
#include <ostream>
#include <sstream>

#include "plimsoll/base/errors.h"
#include "plimsoll/cli/commands/commands.h"
#include "plimsoll/cli/documents.h"
#include "plimsoll/report/comparison.h"
#include "plimsoll/report/json_reader.h"

namespace plimsoll::cli {
namespace {

namespace fs = std::filesystem;

report::ComparedReport read_document(const std::string& file) {
  std::error_code error;
  if (!fs::exists(file, error)) throw InvalidArgument("no such document: " + file);
  if (fs::is_directory(file, error)) throw InvalidArgument(file + " is a folder: name a document in it");
  std::ifstream stream(file, std::ios::binary);
  // A larger one is refused anyway, and need not be in memory for that.
  std::string text(report::kMostDocumentBytes + 1, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!stream && stream.gcount() == 0 && !stream.eof()) throw InvalidArgument("cannot read the document " + file);
  text.resize(static_cast<std::size_t>(stream.gcount()));
  return report::compared_from_json(text, file);
}

}  // namespace

int compare_command(const CompareOptions& options, const Streams& streams) {
  check_document(options.report.json, "--json");
  const report::Comparison comparison = report::compare(read_document(options.a), read_document(options.b));
  write_document(options.report.json, [&] { return report::to_json(comparison); }, streams);
  const bool aside = goes_to_stdout(options.report.json);
  text_stream(streams, aside) << report::to_text(comparison, text_options(options.report, streams, aside))
                              << std::flush;
  return 0;
}

}  // namespace plimsoll::cli
