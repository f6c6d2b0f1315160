#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

/// All changes of this layer to a disk, one virtual method per system call. Tests stop between any two calls, shorten
/// writes and drop unsynced data.

namespace plimsoll::safetensors {

/// Methods throw SystemError that names the call and the path.
class FileOperations {
 public:
  virtual ~FileOperations() = default;

  /// Opens a new, empty file for writing. Fails if the file exists.
  virtual int create(const std::filesystem::path& path) = 0;
  /// Writes at least one of `bytes` at `offset` and returns their number. REQUIRES: bytes is not empty.
  virtual std::size_t write_some(int file, std::uint64_t offset, std::span<const std::byte> bytes,
                                 const std::filesystem::path& path) = 0;
  virtual void sync(int file, const std::filesystem::path& path) = 0;
  virtual void close(int file) noexcept = 0;

  /// Syncs a file with its bytes, or a folder with its names, to the disk.
  virtual void sync_path(const std::filesystem::path& path) = 0;
  virtual void make_folder(const std::filesystem::path& path) = 0;
  /// Replaces `to` if it is a file or an empty folder.
  virtual void rename(const std::filesystem::path& from, const std::filesystem::path& to) = 0;
  /// Removes a file, a link or an empty folder.
  virtual void remove(const std::filesystem::path& path) = 0;

  void write_all(int file, std::uint64_t offset, std::span<const std::byte> bytes, const std::filesystem::path& path);
  /// Makes a file with this text and syncs it. Fails if the file exists.
  void write_file(const std::filesystem::path& path, std::string_view text);
  /// Removes a file, or a folder with its contents. The path may be missing.
  void remove_tree(const std::filesystem::path& path);
  /// Makes the folder and its missing parents, and syncs each.
  void make_folders(const std::filesystem::path& path);
};

/// The real disk. Several threads may use it.
FileOperations& posix_file_operations();

/// The parent folder of `path`; "." for a bare name.
std::filesystem::path folder_of(const std::filesystem::path& path);

}  // namespace plimsoll::safetensors
