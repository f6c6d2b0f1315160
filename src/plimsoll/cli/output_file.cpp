#include "plimsoll/cli/output_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "plimsoll/base/errors.h"

namespace plimsoll::cli {
namespace {

namespace fs = std::filesystem;

bool is_special(const fs::path& file) {
  std::error_code error;
  const fs::file_status status = fs::status(file, error);
  return fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status);
}

/// A link stays a link: what it points to is replaced.
fs::path target_of(const fs::path& file) {
  std::error_code error;
  const fs::path target = fs::canonical(file, error);
  return error ? file : target;
}

fs::path beside(const fs::path& file) {
  return file.parent_path() / ("." + file.filename().string() + "." + std::to_string(getpid()) + ".part");
}

[[noreturn]] void fail(const fs::path& file, const std::string& why) {
  throw InvalidArgument("cannot write " + file.string() + ": " + why);
}

/// A new file has the rights that any other program would have given it, an old one keeps its own.
void put_in_place(const fs::path& part, const fs::path& file) {
  std::error_code error;
  const fs::file_status old = fs::status(file, error);
  if (fs::exists(old)) fs::permissions(part, old.permissions(), error);
  fs::rename(part, file, error);
  if (error) {
    std::error_code ignored;
    fs::remove(part, ignored);
    fail(file, error.message());
  }
}

}  // namespace

void check_writable(const fs::path& file, const std::string& option) {
  const auto refuse = [&](const std::string& why) {
    throw InvalidArgument(option + ": cannot write " + file.string() + ": " + why);
  };
  std::error_code error;
  if (fs::is_directory(file, error)) refuse("it is a folder; name a file in it");
  const fs::path target = target_of(fs::absolute(file));
  if (!is_special(target) && !fs::is_directory(target.parent_path(), error)) {
    refuse("there is no folder " + target.parent_path().string() + "; make it first");
  }
  if (fs::exists(target, error) && access(target.c_str(), W_OK) != 0) refuse(std::strerror(errno));
  if (is_special(target)) return;
  // Only trying tells for sure: rights, read-only file systems, quotas.
  const fs::path part = beside(target);
  const int descriptor = open(part.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
  if (descriptor < 0) refuse(std::strerror(errno));
  close(descriptor);
  unlink(part.c_str());
}

void write_file(const fs::path& file, const std::string& text) {
  const fs::path target = target_of(file);
  const bool special = is_special(target);
  const fs::path part = special ? target : beside(target);
  {
    std::ofstream stream(part, std::ios::binary);
    stream << text;
    stream.close();
    if (!stream) {
      const std::string why = std::strerror(errno);
      std::error_code ignored;
      if (!special) fs::remove(part, ignored);
      fail(file, why);
    }
  }
  if (!special) put_in_place(part, target);
}

void move_into_place(const fs::path& source, const fs::path& file) {
  const fs::path target = target_of(file);
  std::error_code error;
  if (is_special(target)) {
    std::ofstream stream(target, std::ios::binary);
    stream << std::ifstream(source, std::ios::binary).rdbuf();
    stream.close();
    if (!stream) fail(file, std::strerror(errno));
    return;
  }
  const fs::path part = beside(target);
  fs::copy_file(source, part, fs::copy_options::overwrite_existing, error);
  if (error) {
    std::error_code ignored;
    fs::remove(part, ignored);
    fail(file, error.message());
  }
  fs::remove(source, error);
  put_in_place(part, target);
}

TemporaryFolder::TemporaryFolder() {
  std::error_code error;
  fs::path base = fs::temp_directory_path(error);
  if (error) base = "/tmp";
  std::string name = (base / "plimsoll-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) {
    throw InvalidArgument("cannot make a temporary folder in " + base.string() + ": " + std::strerror(errno) +
                          "; set TMPDIR to a folder that can be written");
  }
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace plimsoll::cli
