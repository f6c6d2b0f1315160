#include "plimsoll/pretend/model/streams/clock.h"

namespace plimsoll::pretend {
namespace {

thread_local bool gives_work = false;

Clock::Duration::rep steady_now() noexcept {
  return std::chrono::duration_cast<Clock::Duration>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

void Clock::note_work() noexcept {
  gives_work = true;
  worked_at_.store(steady_now(), std::memory_order_relaxed);
}

bool Clock::has_caught_up() const noexcept {
  const Duration idle(steady_now() - worked_at_.load(std::memory_order_relaxed));
  return idle >= (gives_work ? patience_.of_workers : patience_.of_others);
}

}  // namespace plimsoll::pretend
