#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "plimsoll/safetensors/file_operations.h"

/// A disk that ends the process before its n-th operation, and may drop unsynced data, as after a power failure. It
/// undoes changes through open descriptors, which survive renames. It does not really sync: the kernel's cache outlives
/// the process.
class FaultyOperations final : public plimsoll::safetensors::FileOperations {
 public:
  using Path = std::filesystem::path;

  enum class Loss {
    kNothing,     ///< kill -9
    kFileBytes,   ///< Names are on the disk; unsynced bytes are not.
    kEverything,  ///< Neither names nor bytes, unless synced.
  };
  static constexpr int kCrashed = 77;
  static constexpr std::size_t kLongestWrite = 50;

  /// `graveyard`, a folder on the same disk, keeps removed files, so that a removal can be undone.
  FaultyOperations(std::uint64_t crash_before, Loss loss, Path graveyard)
      : crash_before_(crash_before), loss_(loss), graveyard_(std::move(graveyard)) {}

  [[noreturn]] void crash() {
    if (loss_ == Loss::kEverything) {
      for (auto change = changes_.rbegin(); change != changes_.rend(); ++change) undo(*change);
    }
    if (loss_ != Loss::kNothing) {
      for (const auto& [inode, descriptor] : unsynced_) forget(descriptor);
    }
    _exit(kCrashed);
  }

  int create(const Path& path) override {
    count();
    const int file = real_.create(path);
    unsynced_[inode_of(file)] = dup(file);
    changes_.push_back({Change::kCreated, parent_of(path), path.filename(), {}});
    return file;
  }

  /// Writes a few bytes at a time, so that a crash leaves half-written files.
  std::size_t write_some(int file, std::uint64_t offset, std::span<const std::byte> bytes, const Path& path) override {
    count();
    return real_.write_some(file, offset, bytes.first(std::min(bytes.size(), kLongestWrite)), path);
  }

  void sync(int file, const Path&) override {
    count();
    unsynced_.erase(inode_of(file));
  }

  void close(int file) noexcept override { real_.close(file); }

  void sync_path(const Path& path) override {
    count();
    const std::uint64_t inode = inode_of(path);
    unsynced_.erase(inode);
    std::erase_if(changes_, [&](const Change& change) { return inode_of(change.folder) == inode; });
  }

  void make_folder(const Path& path) override {
    count();
    real_.make_folder(path);
    changes_.push_back({Change::kCreated, parent_of(path), path.filename(), {}});
  }

  /// REQUIRES: both names are in one folder.
  void rename(const Path& from, const Path& to) override {
    count();
    const bool replaces = std::filesystem::exists(to) && !std::filesystem::is_directory(to);
    if (replaces) bury(to);
    real_.rename(from, to);
    changes_.push_back({Change::kRenamed, parent_of(from), from.filename(), to.filename()});
  }

  void remove(const Path& path) override {
    count();
    bury(path);
  }

 private:
  struct Change {
    enum Kind { kCreated, kRenamed, kRemoved } kind;
    int folder;  ///< An open descriptor.
    Path name;
    Path other;  ///< The new name, or the grave.
  };

  void count() {
    if (operations_++ == crash_before_) crash();
  }

  void bury(const Path& path) {
    const Path grave = graveyard_ / std::to_string(graves_++);
    changes_.push_back({Change::kRemoved, parent_of(path), path.filename(), grave});
    std::filesystem::rename(path, grave);
  }

  static void undo(const Change& change) {
    const Path folder = "/proc/self/fd/" + std::to_string(change.folder);
    std::error_code ignored;
    switch (change.kind) {
      case Change::kCreated:
        std::filesystem::remove_all(folder / change.name, ignored);
        break;
      case Change::kRenamed:
        std::filesystem::rename(folder / change.other, folder / change.name, ignored);
        break;
      case Change::kRemoved:
        std::filesystem::rename(change.other, folder / change.name, ignored);
        break;
    }
  }

  static void forget(int descriptor) {
    if (ftruncate(descriptor, 0) != 0) _exit(1);
  }
  static int parent_of(const Path& path) {
    return open(plimsoll::safetensors::folder_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  }
  static std::uint64_t inode_of(int descriptor) {
    struct stat status = {};
    return fstat(descriptor, &status) == 0 ? status.st_ino : 0;
  }
  static std::uint64_t inode_of(const Path& path) {
    struct stat status = {};
    return stat(path.c_str(), &status) == 0 ? status.st_ino : 0;
  }

  FileOperations& real_ = plimsoll::safetensors::posix_file_operations();
  std::uint64_t crash_before_;
  Loss loss_;
  Path graveyard_;
  std::uint64_t operations_ = 0;
  std::uint64_t graves_ = 0;
  std::map<std::uint64_t, int> unsynced_;  // From inode to descriptor.
  std::vector<Change> changes_;            // Unsynced changes of names, oldest first.
};
