#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

/// Every change that this layer makes to a disk, one virtual method for each system call, so that tests can stop
/// between any two of them, cut writes short and forget what was not synced.

namespace plimsoll::safetensors {

/// Methods throw SystemError that names the call and the path.
class FileOperations {
 public:
  virtual ~FileOperations() = default;

  /// A new, empty file, open for writing. Fails where there is one already.
  virtual int create(const std::filesystem::path& path) = 0;
  /// Writes at least one of `bytes` at `offset` and returns how many. REQUIRES: bytes is not empty.
  virtual std::size_t write_some(int file, std::uint64_t offset, std::span<const std::byte> bytes,
                                 const std::filesystem::path& path) = 0;
  virtual void sync(int file, const std::filesystem::path& path) = 0;
  virtual void close(int file) noexcept = 0;

  /// What is at `path`, a file or a folder, is on the disk when this returns: a file with its bytes, a folder with the
  /// names in it.
  virtual void sync_path(const std::filesystem::path& path) = 0;
  virtual void make_folder(const std::filesystem::path& path) = 0;
  /// `to` is replaced if it is a file, or an empty folder.
  virtual void rename(const std::filesystem::path& from, const std::filesystem::path& to) = 0;
  /// A file, a link or an empty folder.
  virtual void remove(const std::filesystem::path& path) = 0;

  void write_all(int file, std::uint64_t offset, std::span<const std::byte> bytes, const std::filesystem::path& path);
  /// A file, or a folder with everything in it; nothing where there is none.
  void remove_tree(const std::filesystem::path& path);
  /// The folder and those above it that are missing, each on the disk when this returns.
  void make_folders(const std::filesystem::path& path);
};

/// The real ones. May be used by several threads.
FileOperations& posix_file_operations();

/// The folder that `path` is in; "." for a bare name.
std::filesystem::path folder_of(const std::filesystem::path& path);

}  // namespace plimsoll::safetensors
