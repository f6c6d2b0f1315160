#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <doctest/doctest.h>

#include "capture/recording_listener.h"
#include "plimsoll/capture/capture.h"
#include "plimsoll/capture/reporting.h"

namespace plimsoll::capture {

namespace {

const c10::Device kOther(c10::kXPU, 0);

void report(std::uintptr_t address, std::int64_t bytes) {
  c10::reportMemoryUsageToProfiler(reinterpret_cast<void*>(address), bytes, 0, 0, kOther);
}

/// Represents torch's profiler.
struct Profiler : c10::MemoryReportingInfoBase {
  void reportMemoryUsage(void*, std::int64_t bytes, std::size_t, std::size_t, c10::Device) override {
    reported += bytes;
  }
  bool memoryProfilingEnabled() const override { return true; }
  std::int64_t reported = 0;
};

TEST_CASE("a device without its own source is observed through the profiler's channel") {
  RecordingListener listener;
  const Subscription subscription(listener);
  {
    const ReportingScope scope;
    report(0x1000, 4096);
    report(0x9000, 512);
    CHECK(listener.total(kOther) == 4608);
    report(0x1000, -4096);
    CHECK(listener.total(kOther) == 512);
    CHECK_FALSE(scope.missed());
  }
  report(0x9000, -512);
  CHECK(listener.total(kOther) == 512);
  const ReportingScope scope;
  report(0x9000, -512);
  CHECK(listener.total(kOther) == 0);
}

TEST_CASE("a profiler that already runs still receives reports") {
  RecordingListener listener;
  const Subscription subscription(listener);
  const auto profiler = std::make_shared<Profiler>();
  {
    const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, profiler);
    {
      const ReportingScope scope;
      report(0x1000, 64);
      report(0x1000, -64);
      report(0x2000, 32);
      CHECK(listener.total(kOther) == 32);
    }
    CHECK(profiler->reported == 32);
    report(0x3000, 8);
    CHECK(profiler->reported == 40);
    CHECK(listener.total(kOther) == 32);
  }
  const ReportingScope scope;
  report(0x2000, -32);
  CHECK(listener.total(kOther) == 0);
}

TEST_CASE("a profiler that starts inside the scope takes the channel, and missed() tells") {
  RecordingListener listener;
  const Subscription subscription(listener);
  const ReportingScope scope;
  {
    const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, std::make_shared<Profiler>());
    CHECK(scope.missed());
    report(0x1000, 64);
    CHECK(listener.total(kOther) == 0);
  }
  CHECK_FALSE(scope.missed());
  report(0x2000, 64);
  CHECK(listener.total(kOther) == 64);
  report(0x2000, -64);
}

TEST_CASE("CPU and CUDA are not other devices") { CHECK_FALSE(has_other_devices()); }

TEST_CASE("CPU memory is not reported twice") {
  RecordingListener listener;
  const Subscription subscription(listener);
  const ReportingScope scope;
  const auto before = listener.alive.size();
  c10::reportMemoryUsageToProfiler(reinterpret_cast<void*>(0x4000), 64, 0, 0, c10::Device(c10::kCPU));
  CHECK(listener.alive.size() == before);
}

}  // namespace

}  // namespace plimsoll::capture
