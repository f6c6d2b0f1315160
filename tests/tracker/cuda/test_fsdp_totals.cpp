#include <doctest/doctest.h>

#include <set>
#include <utility>
#include <vector>

#include "fsdp/cuda/gpu_world.h"
#include "fsdp/training.h"
#include "plimsoll/fsdp/runtime_observer.h"
#include "plimsoll/tracker/fsdp_mem_tracker.h"
#include "tracker/cuda/counted.h"

namespace plimsoll {

namespace {

/// The allocator's count at each stage of the runtime.
class StageCounter final : public fsdp::RuntimeObserver {
 public:
  StageCounter() : observation_(*this) {}

  void on_stage(fsdp::Stage stage, const fsdp::FSDPState&) noexcept override {
    if (!ModuleTracker::is_bw()) counted.emplace_back(static_cast<int>(stage), active_bytes());
  }
  void on_stage(fsdp::Stage stage, const fsdp::FSDPParamGroup&) noexcept override {
    if (stage != fsdp::Stage::kUnshardByHand) counted.emplace_back(static_cast<int>(stage), active_bytes());
  }
  void on_memory(fsdp::MemoryUse, const at::Tensor&, const fsdp::FSDPParamGroup*) noexcept override {}

  std::vector<std::pair<int, std::int64_t>> counted;

 private:
  fsdp::RuntimeObservation observation_;
};

/// The totals of all snapshots but peaks and recomputations, by stage.
std::multiset<std::pair<int, std::int64_t>> recorded(FSDPMemTracker& tracker) {
  std::multiset<std::pair<int, std::int64_t>> totals;
  for (const auto& module : tracker.fsdp_module_stats()) {
    for (const auto& [state, snapshots] : module.snapshots) {
      if (state > FSDPModState::kAfterPostBackward) continue;
      for (const auto& snapshot : snapshots) totals.emplace(static_cast<int>(state), snapshot.at("cuda:0").total());
    }
  }
  return totals;
}

/// Compares the snapshots of a step with the counts right before and right after each. If these two differ, another
/// thread was active (autograd's may drop a graph after backward has returned): then the snapshot equals one of them.
void check_recorded(FSDPMemTracker& tracker, StageCounter& before, StageCounter& after) {
  auto totals = recorded(tracker);
  REQUIRE(totals.size() == before.counted.size());
  REQUIRE(totals.size() == after.counted.size());
  CHECK(totals.size() > 10);
  std::size_t unsure = 0;
  for (std::size_t i = 0; i < before.counted.size(); ++i) {
    auto found = totals.find(before.counted[i]);
    if (before.counted[i] != after.counted[i]) {
      ++unsure;
      if (found == totals.end()) found = totals.find(after.counted[i]);
    }
    REQUIRE(found != totals.end());
    totals.erase(found);
  }
  CHECK(unsure < before.counted.size() / 4);
  before.counted.clear();
  after.counted.clear();
}

}  // namespace

TEST_CASE("at every stage of every FSDP module the total of a GPU is the allocator's active bytes") {
  const char* const kCases[] = {
      "model=network",
      "model=network reshard=false",
      "model=network reshard=2",
      "model=network checkpoint=1 param=bf16 reduce=f32",
      "model=network hsdp=2 store=bf16 param=bf16 reduce=f32",
      "model=network hsdp=2 accumulate=no_all_reduce",
      "model=network accumulate=no_sync param=bf16 reduce=f32",
      "model=network accumulate=no_sync+keep+last",
      "model=network offload=pin",
      "model=network offload=no_pin",
      "model=network second_mesh=fsdp",
      "model=network prefetch=2",
      "model=network by_hand=1",
      "model=network times=2",
      "model=network unused=1 reduce_unused=1",
      "model=network frozen=1",
      "model=network built=meta",
      "model=gpt group=1",
      "model=gpt tied=1 checkpoint=1",
      "model=gpt shard_dim=1 dim=16",
      "model=gpt ignored=1 input_buffers=2",
      "model=gpt optimizer=adamw_fused",
  };
  const small::GpuWorld world(8, "fake");
  for (const std::string line : kCases) {
    CAPTURE(line);
    const scenarios::Case c(line);
    scenarios::with_training(
        c, at::kCUDA, [](const std::string&) {},
        [&](auto training) {
          StageCounter before;  // Observers are called in the order of their registration.
          FSDPMemTracker tracker(training->root(), training->optimizer());
          StageCounter after;
          {
            const auto scope = tracker.enter();
            // The snapshots are those of the latest step.
            training->run(0, [&](int, const auto&) {
              on_gpu(tracker);
              check_recorded(tracker, before, after);
            });
            on_gpu(tracker);
          }
          const auto explanation = tracker.explain();
          std::int64_t explained = 0;
          for (const auto& cause : explanation.causes) explained += cause.bytes;
          CHECK(explained == explanation.total);
          CHECK(explanation.total == tracker.snapshot(SnapshotKind::kPeak).at("cuda:0").total());
        });
  }
}

TEST_CASE("device_books has active, reserved, and the bytes outside of torch") {
  const small::GpuWorld world(8, "fake");
  const scenarios::Case c("model=network");
  scenarios::with_training(
      c, at::kCUDA, [](const std::string&) {},
      [&](auto training) {
        namespace allocator = c10::cuda::CUDACachingAllocator;
        FSDPMemTracker tracker(training->root(), training->optimizer());
        allocator::resetPeakStats(0);
        auto scope = std::make_unique<MemTracker::Scope>(tracker.enter());
        training->run(0, [](int, const auto&) {});
        const auto books = tracker.device_books("cuda:0");
        CHECK(books.active.current == active_bytes());
        CHECK(books.active.peak == tracker.snapshot(SnapshotKind::kPeak).at("cuda:0").total());
        const auto stats = allocator::getDeviceStats(0);
        CHECK(books.reserved.current == stats.reserved_bytes[0].current);
        CHECK(books.reserved.peak == stats.reserved_bytes[0].peak);
        const auto [free, all] = allocator::get()->getMemoryInfo(0);
        CHECK(books.outside + books.reserved.current == static_cast<std::int64_t>(all - free));
        CHECK(books.outside > 0);  // The context.
        scope.reset();
        const auto more = at::empty({64 << 20}, at::TensorOptions(at::Device(at::kCUDA, 0)));
        CHECK(tracker.device_books("cuda:0").reserved.peak == books.reserved.peak);  // That of the scope.
        CHECK(tracker.device_books("cuda:0").active.peak == books.active.peak);
      });
}

}  // namespace plimsoll
