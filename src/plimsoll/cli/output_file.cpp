#include "plimsoll/cli/output_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>

#include "plimsoll/base/errors.h"

namespace plimsoll::cli {
namespace {

namespace fs = std::filesystem;

bool is_special(const fs::path& file) {
  std::error_code error;
  const fs::file_status status = fs::status(file, error);
  return fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status);
}

/// The file that a link points to: the link itself stays.
fs::path target_of(const fs::path& file) {
  std::error_code error;
  const fs::path target = fs::canonical(file, error);
  return error ? file : target;
}

fs::path beside(const fs::path& file) {
  return file.parent_path() / ("." + file.filename().string() + "." + std::to_string(getpid()) + ".part");
}

[[noreturn]] void fail(const fs::path& file, int error) { throw SystemError("cannot write " + file.string(), error); }

/// Renames `part` to `file`. A file that existed keeps its permissions.
void put_in_place(const fs::path& part, const fs::path& file) {
  std::error_code error;
  const fs::file_status old = fs::status(file, error);
  if (fs::exists(old)) fs::permissions(part, old.permissions(), error);
  fs::rename(part, file, error);
  if (error) {
    std::error_code ignored;
    fs::remove(part, ignored);
    fail(file, error.value());
  }
}

/// If `write` fails no part of the file stays. A stream keeps errno, which functions of std::filesystem lose.
void write_by(const fs::path& file, const std::function<void(std::ofstream&)>& write) {
  const fs::path target = target_of(file);
  const bool special = is_special(target);
  const fs::path part = special ? target : beside(target);
  errno = 0;
  std::ofstream stream(part, std::ios::binary);
  write(stream);
  stream.close();
  if (!stream) {
    const int error = errno;
    std::error_code ignored;
    if (!special) fs::remove(part, ignored);
    fail(file, error);
  }
  if (!special) put_in_place(part, target);
}

}  // namespace

void check_writable(const fs::path& file, const std::string& option) {
  const auto refuse = [&](const std::string& why) {
    throw InvalidArgument(option + ": cannot write " + file.string() + ": " + why);
  };
  std::error_code error;
  if (fs::is_directory(file, error)) refuse("it is a folder: name a file in it");
  const fs::path target = target_of(fs::absolute(file));
  if (!is_special(target) && !fs::is_directory(target.parent_path(), error)) {
    refuse("the folder " + target.parent_path().string() + " does not exist: make it first");
  }
  if (fs::exists(target, error) && access(target.c_str(), W_OK) != 0) refuse(std::strerror(errno));
  if (is_special(target)) return;
  // Only a trial finds read-only file systems and quotas.
  const fs::path part = beside(target);
  const int descriptor = open(part.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
  if (descriptor < 0) refuse(std::strerror(errno));
  close(descriptor);
  unlink(part.c_str());
}

void write_file(const fs::path& file, const std::string& text) {
  write_by(file, [&](std::ofstream& stream) { stream << text; });
}

void move_into_place(const fs::path& source, const fs::path& file) {
  write_by(file, [&](std::ofstream& stream) {
    std::ifstream from(source, std::ios::binary);
    std::array<char, 1 << 16> chunk;
    while (from.read(chunk.data(), chunk.size()) || from.gcount() > 0) stream.write(chunk.data(), from.gcount());
    if (!from.is_open() || from.bad()) stream.setstate(std::ios::failbit);
  });
  std::error_code ignored;
  fs::remove(source, ignored);
}

TemporaryFolder::TemporaryFolder() {
  std::error_code error;
  fs::path base = fs::temp_directory_path(error);
  if (error) base = "/tmp";
  std::string name = (base / "plimsoll-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) {
    throw SystemError("cannot make a temporary folder in " + base.string(), errno, "; set TMPDIR to a writable folder");
  }
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace plimsoll::cli
