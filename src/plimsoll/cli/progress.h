#pragma once

#include <chrono>
#include <cstddef>
#include <iosfwd>
#include <string>

namespace plimsoll::cli {

/// One line on a terminal that is drawn again and again, ten times a second at most, and is gone at the end. Nothing
/// anywhere else.
class Progress {
 public:
  /// `wanted`: the stream is a terminal.
  Progress(std::ostream& stream, bool wanted);
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// "[####----] 12 of 30 jobs" and what else there is to say. A total of 0 is not known: no bar.
  void show(std::size_t done, std::size_t total, const std::string& text);
  void clear();

 private:
  std::ostream& stream_;
  bool wanted_;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point last_{};
};

}  // namespace plimsoll::cli
