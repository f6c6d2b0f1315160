#pragma once

#include <chrono>
#include <cstddef>
#include <iosfwd>
#include <string>

namespace plimsoll::cli {

/// One line on a terminal, drawn at most ten times a second and erased at the end. Other streams get nothing.
class Progress {
 public:
  /// `wanted`: the stream is a terminal.
  Progress(std::ostream& stream, bool wanted);
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Draws "[####----] 12 of 30 jobs" and `text`. A total of 0 means unknown: no bar.
  void show(std::size_t done, std::size_t total, const std::string& text);
  void clear();

 private:
  std::ostream& stream_;
  bool wanted_;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point last_{};
};

}  // namespace plimsoll::cli
