#include "plimsoll/safetensors/file_operations.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <string>
#include <system_error>
#include <vector>

#include "plimsoll/base/errors.h"

namespace plimsoll::safetensors {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaximumWrite = std::size_t{1} << 30;  // Linux writes a little less than 2 GiB at a time.

[[noreturn]] void fail(const std::string& what, const fs::path& path, int error) {
  throw SystemError("cannot " + what + " " + path.string(), error);
}

/// Repeats a call that a signal interrupted.
template <class Call>
auto uninterrupted(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

class PosixFileOperations final : public FileOperations {
 public:
  int create(const fs::path& path) override {
    const int file = uninterrupted([&] { return ::open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666); });
    if (file < 0) fail("create", path, errno);
    return file;
  }

  std::size_t write_some(int file, std::uint64_t offset, std::span<const std::byte> bytes,
                         const fs::path& path) override {
    const std::size_t length = std::min(bytes.size(), kMaximumWrite);
    const ssize_t written =
        uninterrupted([&] { return ::pwrite(file, bytes.data(), length, static_cast<off_t>(offset)); });
    if (written <= 0) fail("write", path, written < 0 ? errno : ENOSPC);
    return static_cast<std::size_t>(written);
  }

  void sync(int file, const fs::path& path) override {
    if (uninterrupted([&] { return ::fsync(file); }) != 0) fail("sync", path, errno);
  }

  void close(int file) noexcept override { ::close(file); }

  void sync_path(const fs::path& path) override {
    const int file = uninterrupted([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC); });
    if (file < 0) fail("sync", path, errno);
    const bool synced = uninterrupted([&] { return ::fsync(file); }) == 0;
    const int error = errno;
    ::close(file);
    // Some file systems cannot sync folders.
    if (!synced && error != EINVAL) fail("sync", path, error);
  }

  void make_folder(const fs::path& path) override {
    if (::mkdir(path.c_str(), 0777) != 0) fail("make the folder", path, errno);
  }

  void rename(const fs::path& from, const fs::path& to) override {
    if (::rename(from.c_str(), to.c_str()) != 0) fail("rename " + from.string() + " to", to, errno);
  }

  void remove(const fs::path& path) override {
    if (std::remove(path.c_str()) != 0) fail("remove", path, errno);
  }
};

}  // namespace

void FileOperations::write_all(int file, std::uint64_t offset, std::span<const std::byte> bytes, const fs::path& path) {
  while (!bytes.empty()) {
    const std::size_t written = write_some(file, offset, bytes, path);
    offset += written;
    bytes = bytes.subspan(written);
  }
}

void FileOperations::write_file(const fs::path& path, std::string_view text) {
  const int file = create(path);
  try {
    write_all(file, 0, std::as_bytes(std::span(text)), path);
    sync(file, path);
  } catch (...) {
    close(file);
    throw;
  }
  close(file);
}

void FileOperations::remove_tree(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::symlink_status(path, error);
  if (!fs::exists(status)) return;
  if (fs::is_directory(status)) {
    std::vector<fs::path> entries;
    for (auto entry = fs::directory_iterator(path, error); !error && entry != fs::directory_iterator();
         entry.increment(error)) {
      entries.push_back(entry->path());
    }
    if (error) fail("list", path, error.value());
    std::sort(entries.begin(), entries.end());
    for (const fs::path& entry : entries) remove_tree(entry);
  }
  remove(path);
}

void FileOperations::make_folders(const fs::path& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) return;
  if (!path.has_filename()) return make_folders(path.parent_path());  // The path ends with a slash.
  const fs::path above = folder_of(path);
  make_folders(above);
  make_folder(path);
  sync_path(above);
}

FileOperations& posix_file_operations() {
  static PosixFileOperations operations;
  return operations;
}

fs::path folder_of(const fs::path& path) { return path.has_parent_path() ? path.parent_path() : fs::path("."); }

}  // namespace plimsoll::safetensors
