#include "plimsoll/cli/documents.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <ostream>
#include <string_view>

#include "plimsoll/base/errors.h"
#include "plimsoll/cli/planning.h"

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

constexpr std::chrono::milliseconds kInterval{100};
constexpr std::size_t kBarWidth = 24;
constexpr const char* kErase = "\r\x1b[K";

/// The terminal's width, because a line that wraps cannot be erased. 0: unknown.
std::size_t columns() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

bool is_dumb() {
  const char* terminal = std::getenv("TERM");
  return terminal != nullptr && std::string_view(terminal) == "dumb";
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

bool goes_to_stdout(const std::optional<std::string>& file) { return file == "-"; }

void check_document(const std::optional<std::string>& file, const std::string& option) {
  if (file && !goes_to_stdout(file)) check_writable(*file, option);
}

void check_binary(const std::optional<std::string>& file, const std::string& option) {
  if (goes_to_stdout(file)) throw InvalidArgument(option + " needs the name of a file: it is not text");
  check_document(file, option);
}

void write_document(const std::optional<std::string>& file, const std::function<std::string()>& text,
                    const Streams& streams) {
  if (!file) return;
  if (goes_to_stdout(file)) {
    streams.out << text() << std::flush;
    return;
  }
  write_file(*file, text());
}

report::TextOptions text_options(const ReportOptions& options, const Streams& streams, bool aside) {
  return {.colour = aside ? streams.err_colour : streams.out_colour,
          .depth = static_cast<std::size_t>(options.depth),
          .unit = options.unit,
          .quiet = options.quiet,
          .full = options.full,
          .unicode = aside ? streams.err_unicode : streams.out_unicode};
}

std::ostream& text_stream(const Streams& streams, bool aside) { return aside ? streams.err : streams.out; }

Progress::Progress(std::ostream& stream, bool wanted) : stream_(stream), wanted_(wanted && !is_dumb()) {}

void Progress::show(std::size_t done, std::size_t total, const std::string& text) {
  const auto now = std::chrono::steady_clock::now();
  if (!wanted_ || (drawn_ && now - last_ < kInterval)) return;
  std::string line;
  if (total > 0) {
    const std::size_t full = kBarWidth * done / total;
    line = "[" + std::string(full, '#') + std::string(kBarWidth - full, '-') + "] " + std::to_string(done) + " of " +
           std::to_string(total) + " jobs";
  }
  if (!text.empty()) line += (line.empty() ? "" : "  ") + text;
  const std::size_t room = columns();
  if (room > 1 && line.size() > room - 1) line.resize(room - 1);
  stream_ << kErase << "\x1b[2m" << line << "\x1b[0m\r" << std::flush;
  last_ = now;
  drawn_ = true;
}

void Progress::clear() {
  if (!drawn_) return;
  drawn_ = false;
  stream_ << kErase << std::flush;
}

}  // namespace plimsoll::cli
