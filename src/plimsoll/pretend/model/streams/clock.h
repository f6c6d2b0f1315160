#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace plimsoll::pretend {

/// The device's clock, on which events complete. It ticks once for each launch, copy and fill. An event recorded at
/// tick t completes at t + lag; with a lag of 0, the default, at once. When the host waits for anything, the clock
/// advances by the lag, so all events recorded before have completed.
///
/// After a while without work, a device has completed everything, so that polling ends. The delay depends on the thread
/// that asks. A thread that never gave the device work gets a short one: NCCL's watchdog, on which the end of a process
/// group waits, knows only time. A thread that did gets a long one: torch's allocator polls at every allocation, and
/// its result must depend on launches, not on the speed of this machine.
///
/// Thread-safe.
class Clock {
 public:
  using Duration = std::chrono::nanoseconds;
  /// The time without work after which a device has completed all its work, by asking thread.
  struct Patience {
    Duration of_workers = std::chrono::seconds(30);
    Duration of_others = std::chrono::milliseconds(100);
  };

  explicit Clock(std::uint64_t lag) : Clock(lag, Patience()) {}
  Clock(std::uint64_t lag, Patience patience) : lag_(lag), patience_(patience) {}

  void tick() noexcept {
    now_.fetch_add(1, std::memory_order_relaxed);
    if (lag_ != 0) note_work();
  }

  void wait() noexcept {
    if (lag_ != 0) now_.fetch_add(lag_, std::memory_order_relaxed);
  }

  /// The tick at which an event recorded now completes.
  std::uint64_t record() noexcept {
    if (lag_ != 0) note_work();
    return now_.load(std::memory_order_relaxed) + lag_;
  }

  bool has_reached(std::uint64_t due) const noexcept {
    return due <= now_.load(std::memory_order_relaxed) || (lag_ != 0 && has_caught_up());
  }

 private:
  void note_work() noexcept;
  bool has_caught_up() const noexcept;

  const std::uint64_t lag_;
  const Patience patience_;
  std::atomic<std::uint64_t> now_{0};
  std::atomic<Duration::rep> worked_at_{0};  ///< In the machine's steady clock.
};

}  // namespace plimsoll::pretend
