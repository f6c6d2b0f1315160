#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>

#include "plimsoll/cli/grammar/common_flags.h"
#include "plimsoll/report/text/options.h"
#include "plimsoll/report/text/table.h"

/// The output of a command: documents in files or on standard output, and the text beside them.
namespace plimsoll::cli {

/// Throws InvalidArgument with the name of `option` if `file` cannot be written: it is a folder, its folder does not
/// exist, or it is not writable. Leaves no file behind.
void check_writable(const std::filesystem::path& file, const std::string& option);

/// Writes all of `text`, or leaves `file` unchanged: the text goes to a temporary file beside it, which then replaces
/// it. A file that is not regular (/dev/stderr, a pipe) is written directly. Throws SystemError.
void write_file(const std::filesystem::path& file, const std::string& text);

/// The same with the contents of `source`, which is removed.
void move_into_place(const std::filesystem::path& source, const std::filesystem::path& file);

/// A folder that its destructor removes with all its contents.
class TemporaryFolder {
 public:
  /// Throws SystemError.
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// The output streams of a command.
struct Streams {
  std::ostream& out;
  std::ostream& err;
  report::Colour out_colour = report::Colour::kNever;
  report::Colour err_colour = report::Colour::kNever;
  bool out_unicode = false;  ///< Standard output shows block characters: a terminal of UTF-8.
  bool err_unicode = false;
  bool progress = false;  ///< Standard error is a terminal.
};

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

/// One line on a terminal, drawn at most ten times a second and erased at the end. Other streams get nothing.
class Progress {
 public:
  /// `wanted`: the stream is a terminal.
  Progress(std::ostream& stream, bool wanted);
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Draws "[####----] 12 of 30 jobs" and `text`. A total of 0 means unknown: no bar.
  void show(std::size_t done, std::size_t total, const std::string& text);
  void clear();

 private:
  std::ostream& stream_;
  bool wanted_;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point last_{};
};

}  // namespace plimsoll::cli
