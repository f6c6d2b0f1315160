#pragma once

#include <functional>
#include <optional>
#include <string>

#include "plimsoll/cli/grammar/common_flags.h"
#include "plimsoll/cli/streams.h"
#include "plimsoll/report/text/options.h"

/// The output of a command: documents in files or on standard output, and the text beside them.
namespace plimsoll::cli {

/// Whether the document goes to standard output, and so the text to standard error.
bool goes_to_stdout(const std::optional<std::string>& file);

/// Throws InvalidArgument if the file that `option` names cannot be written.
void check_document(const std::optional<std::string>& file, const std::string& option);
/// The same for a binary file.
void check_binary(const std::optional<std::string>& file, const std::string& option);

/// Writes a document if one is wanted. Throws SystemError if the write fails; nothing half-written stays.
void write_document(const std::optional<std::string>& file, const std::function<std::string()>& text,
                    const Streams& streams);

/// The form and the stream of the text. `aside`: a document has standard output.
report::TextOptions text_options(const ReportOptions& options, const Streams& streams, bool aside = false);
std::ostream& text_stream(const Streams& streams, bool aside);

}  // namespace plimsoll::cli
