#pragma once

#include <filesystem>
#include <string>

namespace plimsoll::cli {

/// Throws InvalidArgument where `file` could not be written later: no such folder, a folder itself, no permission.
/// `option` names it in the message. Leaves nothing behind.
void check_writable(const std::filesystem::path& file, const std::string& option);

/// Writes all of `text`, or leaves `file` as it was: the text goes to a temporary file beside it, which then takes its
/// place. What is not a regular file (/dev/stderr, a pipe) is written straight.
/// Throws SystemError.
void write_file(const std::filesystem::path& file, const std::string& text);

/// The same with the contents of `source`, which is moved.
void move_into_place(const std::filesystem::path& source, const std::filesystem::path& file);

/// A folder for the time of one run, removed with all its contents at the end.
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

}  // namespace plimsoll::cli
