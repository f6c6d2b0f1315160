#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace plimsoll::pretend {

struct Capture;
struct GraphNode;

/// A queue of work on one device. Work completes at once, except for the clock's lag.
struct Stream {
  static constexpr std::uint32_t kAlive = 0x5354524dU;
  // Lower numbers have higher priority. A value out of range becomes the nearest in range.
  static constexpr int kLeastPriority = 0;
  static constexpr int kGreatestPriority = -5;

  /// Cleared on destruction, so that a stale handle is an error and not a crash.
  std::atomic<std::uint32_t> magic{kAlive};
  int device = 0;
  int priority = 0;
  unsigned flags = 0;
  std::uint64_t id = 0;  ///< 0: the device's default stream.

  /// Set while the stream is captured into a graph. Guarded by Machine::capture_mutex_; `capturing` is a hint that
  /// avoids the lock.
  std::shared_ptr<Capture> capture;
  std::atomic<bool> capturing{false};
};

/// A mark in a stream.
struct StreamEvent {
  static constexpr std::uint32_t kAlive = 0x45564e54U;

  std::atomic<std::uint32_t> magic{kAlive};
  int device = 0;
  unsigned flags = 0;
  std::atomic<bool> recorded{false};
  std::atomic<std::uint64_t> due{0};
  std::atomic<std::uint64_t> mark{0};  ///< The number of the record; 0: never recorded.

  // Set if it was recorded in a captured stream; guarded as Stream::capture is.
  std::weak_ptr<Capture> capture;
  std::vector<GraphNode*> captured_ends;  ///< The dependencies of the stream at that point.
};

}  // namespace plimsoll::pretend
