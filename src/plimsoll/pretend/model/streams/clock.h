#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace plimsoll::pretend {

/// The device's clock, on which events complete. It ticks once for each launch, copy and fill. An event recorded at
/// tick t completes at t + lag; with a lag of 0, the default, at once. Whenever the host waits for anything, the clock
/// runs on by the lag, so that all that was recorded before has completed.
///
/// A device that gets no more work comes to the end of what it has, so whoever polls does not poll for ever. How long
/// that takes depends on who asks. A thread that never gave the device work (NCCL's watchdog, which a process group
/// waits for when it is destroyed) knows only time, and is soon told. A thread that did is told much later: torch's
/// allocator polls too, at every allocation, and what it finds is to depend on launches and not on how fast this
/// machine is.
///
/// Thread-safe.
class Clock {
 public:
  using Duration = std::chrono::nanoseconds;
  /// How long a device has had no work before it has done all of it, for a thread that asks.
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

  /// When an event completes that is recorded now.
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
  std::atomic<Duration::rep> worked_at_{0};  ///< of the machine's steady clock
};

}  // namespace plimsoll::pretend
