#pragma once

#include <filesystem>
#include <string>

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

}  // namespace plimsoll::cli
