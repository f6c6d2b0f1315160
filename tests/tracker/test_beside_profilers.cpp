#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <doctest/doctest.h>
#include <torch/csrc/autograd/profiler_kineto.h>

#include "plimsoll/tracker/mem_tracker.h"
#include "tracker/looking.h"
#include "tracker/models.h"

namespace plimsoll {

namespace {

/// A fake profiler that counts memory.
struct Counting final : c10::MemoryReportingInfoBase {
  void reportMemoryUsage(void*, std::int64_t bytes, std::size_t, std::size_t, c10::Device) override {
    reports += bytes > 0 ? 1 : 0;
  }
  bool memoryProfilingEnabled() const override { return true; }
  int reports = 0;
};

void train(MemTracker& tracker, const ExpectedCpuTotal& expected) {
  models::MLP model(8, 16, 4);
  model(at::ones({2, 8})).sum().backward();
  CHECK(total(tracker) == expected());
  CHECK(bytes_of(tracker, "Gradient") == bytes_of(tracker, "Parameter"));
}

}  // namespace

TEST_CASE("a profiler that runs already, and the tracker, both see the memory") {
  const auto profiler = std::make_shared<Counting>();
  const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, profiler);
  MemTracker tracker;
  const ExpectedCpuTotal expected(tracker);
  const auto scope = tracker.enter();
  train(tracker, expected);
  CHECK(profiler->reports > 10);
  CHECK(now(tracker) == kNothing);
}

TEST_CASE("a profiler that begins inside the scope, and the tracker, both see the memory") {
  MemTracker tracker;
  const ExpectedCpuTotal expected(tracker);
  const auto profiler = std::make_shared<Counting>();
  {
    const auto scope = tracker.enter();
    const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, profiler);
    train(tracker, expected);
  }
  CHECK(profiler->reports > 10);
  const auto scope = tracker.enter();
  train(tracker, expected);
}

TEST_CASE("torch's own profiler with memory on, and the tracker, both see the memory") {
  namespace profiler = torch::autograd::profiler;
  const profiler::ProfilerConfig config(profiler::ProfilerState::KINETO, /*report_input_shapes=*/false,
                                        /*profile_memory=*/true);
  MemTracker tracker;
  const ExpectedCpuTotal expected(tracker);
  const auto scope = tracker.enter();
  profiler::prepareProfiler(config, {torch::profiler::impl::ActivityType::CPU});
  profiler::enableProfiler(config, {torch::profiler::impl::ActivityType::CPU});
  train(tracker, expected);
  const auto result = profiler::disableProfiler();
  CHECK(now(tracker) == kNothing);
  std::int64_t allocations = 0;
  for (const auto& event : result->events()) allocations += event.name() == "[memory]" && event.nBytes() > 0;
  CHECK(allocations > 10);
}

}  // namespace plimsoll
