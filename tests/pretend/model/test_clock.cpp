#include <doctest/doctest.h>

#include <chrono>
#include <thread>

#include "plimsoll/pretend/model/streams/clock.h"

namespace test_clock {

using plimsoll::pretend::Clock;

constexpr Clock::Duration kAtOnce = std::chrono::nanoseconds(0);
constexpr Clock::Duration kNever = std::chrono::hours(24);

bool asked_by_another_thread(const Clock& clock, std::uint64_t due) {
  bool answer = false;
  std::thread([&] { answer = clock.has_reached(due); }).join();
  return answer;
}

TEST_CASE("without a lag an event completes at once") {
  Clock clock(0);
  CHECK(clock.has_reached(clock.record()));
}

TEST_CASE("with a lag of N an event completes after N launches, or when the host waits") {
  Clock clock(2, {.of_workers = kNever, .of_others = kNever});
  const auto due = clock.record();
  clock.tick();
  CHECK_FALSE(clock.has_reached(due));
  clock.tick();
  CHECK(clock.has_reached(due));
  const auto next = clock.record();
  CHECK_FALSE(clock.has_reached(next));
  clock.wait();
  CHECK(clock.has_reached(next));
}

TEST_CASE("for a thread that gave a device no work, an idle device completes its work soon") {
  Clock clock(2, {.of_workers = kNever, .of_others = kAtOnce});
  const auto due = clock.record();
  CHECK_FALSE(clock.has_reached(due));
  CHECK(asked_by_another_thread(clock, due));
  CHECK_FALSE(clock.has_reached(due));
}

TEST_CASE("for a thread that gave a device work, an idle device completes its work late") {
  Clock clock(2, {.of_workers = kAtOnce, .of_others = kNever});
  const auto due = clock.record();
  CHECK(clock.has_reached(due));
  CHECK_FALSE(asked_by_another_thread(clock, due));
}

TEST_CASE("a launch counts as work of its thread") {
  Clock clock(1000, {.of_workers = kNever, .of_others = kAtOnce});
  const auto due = clock.record();
  bool answer = true;
  std::thread([&] {
    clock.tick();
    answer = clock.has_reached(due);
  }).join();
  CHECK_FALSE(answer);
}

}  // namespace test_clock
