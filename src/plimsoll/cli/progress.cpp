#include "plimsoll/cli/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <ostream>
#include <string_view>

namespace plimsoll::cli {
namespace {

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
