#include <ATen/Functions.h>
#include <ATen/core/CachingHostAllocator.h>
#include <c10/core/AllocatorConfig.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <doctest/doctest.h>

#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "capture/counting_allocator.h"
#include "capture/recording_listener.h"
#include "plimsoll/base/bytes.h"
#include "plimsoll/capture/capture.h"
#include "plimsoll/capture/host_tap.h"

namespace plimsoll::capture::test_pinned {

namespace {

using namespace literals;

const c10::Device kGpu(c10::kCUDA, 0);
const auto kPinned = at::TensorOptions().dtype(at::kByte).pinned_memory(true);

at::Tensor pinned(std::int64_t bytes) { return at::empty({bytes}, kPinned); }

at::Tensor before_any_tap = pinned(100);  // Made before the first test.

at::HostAllocator& host_allocator() { return *at::getHostAllocator(at::kCUDA); }
/// The active bytes in the host allocator's own statistics.
Bytes allocator_active() { return host_allocator().get_stats().active_bytes.current; }

/// The CPU bytes that the listener received, without those of the ordinary CPU allocator: the pinned bytes.
class PinnedBytes {
 public:
  explicit PinnedBytes(const RecordingListener& listener) : listener_(listener), before_(unexplained()) {}
  Bytes pinned() const { return unexplained() - before_; }

 private:
  Bytes unexplained() const { return listener_.total(kCpu) - counted_cpu_bytes(); }

  const RecordingListener& listener_;
  Bytes before_;
};

/// Copies on a separate stream, so that this stream uses the block.
void copy_to_gpu(const at::Tensor& tensor) {
  static const auto stream = c10::cuda::getStreamFromPool();
  const c10::cuda::CUDAStreamGuard guard(stream);
  tensor.to(kGpu, /*non_blocking=*/true);
}

TEST_CASE("pinned memory counts as host memory with the size of its block, until it is freed") {
  RecordingListener listener;
  const Subscription subscription(listener);
  const PinnedBytes counted(listener);
  {
    const auto whole = pinned(4096);
    CHECK(counted.pinned() == 4096);
    const auto rounded = pinned(5000);
    CHECK(counted.pinned() == 4096 + 8192);
    REQUIRE(find(rounded));
    CHECK(find(rounded)->bytes == 8192);
    CHECK(listener.alive.at(find(rounded)->id).device == kCpu);
    CHECK(pinned(0).numel() == 0);
    const auto copied = at::zeros({300}, at::kFloat).pin_memory();
    CHECK(copied.is_pinned());
    CHECK(counted.pinned() == 4096 + 8192 + 2048);
  }
  CHECK(counted.pinned() == 0);
  CHECK(listener.defects.empty());
}

TEST_CASE("the pinned bytes equal the host allocator's count, also after frees on other threads") {
  RecordingListener listener;
  const Subscription subscription(listener);
  const PinnedBytes counted(listener);
  host_allocator().empty_cache();
  const auto active_before = allocator_active();
  std::mt19937 random(5);
  std::vector<at::Tensor> tensors;
  for (int i = 0; i < 2000; ++i) {
    if (tensors.empty() || random() % 5 < 3) {
      tensors.push_back(pinned(1 + static_cast<std::int64_t>(random() % (random() % 8 == 0 ? 3'000'000 : 9000))));
      if (random() % 3 == 0) copy_to_gpu(tensors.back());
    } else {
      std::swap(tensors[random() % tensors.size()], tensors.back());
      if (i % 10 == 0) {
        std::thread([tensor = std::exchange(tensors.back(), at::Tensor())]() mutable { tensor = at::Tensor(); }).join();
      }
      tensors.pop_back();
    }
    if (i % 5 != 0) continue;
    host_allocator().empty_cache();  // Checks the events: blocks that streams no longer use become inactive.
    REQUIRE(counted.pinned() == allocator_active() - active_before);
  }
  tensors.clear();
  host_allocator().empty_cache();
  CHECK(counted.pinned() == 0);
  CHECK(allocator_active() == active_before);
  CHECK(listener.defects.empty());
}

TEST_CASE("a block above the rounding threshold counts the requested bytes, as in the host allocator") {
  RecordingListener listener;
  const Subscription subscription(listener);
  const PinnedBytes counted(listener);
  host_allocator().empty_cache();
  const auto active_before = allocator_active();
  for (const auto* setting : {"pinned_max_round_threshold_mb:1", "pinned_max_cached_size_mb:1"}) {
    c10::CachingAllocator::setAllocatorSettings(setting);
    {
      const auto rounded = pinned(900'000), exact = pinned(1'500'000);
      CHECK(counted.pinned() == 1_MiB + 1'500'000);
      CHECK(counted.pinned() == allocator_active() - active_before);
    }
    host_allocator().empty_cache();
    CHECK(counted.pinned() == 0);
    CHECK(allocator_active() == active_before);
    c10::CachingAllocator::setAllocatorSettings(
        "pinned_max_round_threshold_mb:1000000,pinned_max_cached_size_mb:1000000");
  }
}

TEST_CASE("concurrent allocations of pinned memory are all reported") {
  RecordingListener listener;
  const Subscription subscription(listener);
  const PinnedBytes counted(listener);
  host_allocator().empty_cache();
  const auto active_before = allocator_active();
  std::vector<at::Tensor> kept(4);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&kept, t] {
      for (int i = 1; i < 500; ++i) {
        kept[t] = pinned(i * 40 + t);
        if (i % 7 == 0) copy_to_gpu(kept[t]);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  host_allocator().empty_cache();
  CHECK(counted.pinned() == 4 * 32'768);
  CHECK(counted.pinned() == allocator_active() - active_before);
  kept.clear();
  CHECK(counted.pinned() == 0);
  CHECK(listener.defects.empty());
}

TEST_CASE("a pinned tensor made without listeners can be adopted; its free and resize are reported") {
  auto tensor = pinned(3000);  // The tap, if installed, has no listener.
  RecordingListener listener;
  const Subscription subscription(listener);
  const PinnedBytes counted(listener);
  CHECK_FALSE(find(tensor));
  CHECK(counted.pinned() == 0);
  REQUIRE(adopt(tensor));
  CHECK(adopt(tensor)->bytes == 4096);
  CHECK(adopt(tensor)->id == find(tensor)->id);
  CHECK(counted.pinned() == 4096);
  tensor.resize_({6000});
  CHECK(tensor.is_pinned());
  CHECK(counted.pinned() == 8192);
  tensor = at::Tensor();
  CHECK(counted.pinned() == 0);
  CHECK(listener.defects.empty());
}

TEST_CASE("a pinned tensor that is older than the tap can be adopted") {
  RecordingListener listener;
  const Subscription subscription(listener);
  const PinnedBytes counted(listener);
  CHECK_FALSE(find(before_any_tap));
  CHECK(before_any_tap.storage().allocator() != &host_allocator());
  REQUIRE(adopt(before_any_tap));
  CHECK(counted.pinned() == 128);
  before_any_tap.resize_({200});
  CHECK(counted.pinned() == 256);
  before_any_tap = at::Tensor();
  CHECK(counted.pinned() == 0);
}

TEST_CASE("memory pinned outside the allocator, and memory that is not pinned, cannot be adopted") {
  RecordingListener listener;
  const Subscription subscription(listener);
  const auto owner = pinned(64);
  CHECK_FALSE(adopt_pinned_storage(at::from_blob(owner.data_ptr<std::uint8_t>() + 8, {8}, at::kByte).storage()));
  std::vector<float> blob(16);
  CHECK_FALSE(adopt_pinned_storage(at::from_blob(blob.data(), {16}).storage()));
  CHECK_FALSE(adopt_pinned_storage(at::from_blob(blob.data(), {16}, [](void*) {}).storage()));
  CHECK_FALSE(adopt_pinned_storage(at::empty({16}, at::TensorOptions().device(kGpu)).storage()));
  CHECK_FALSE(adopt_pinned_storage(pinned(0).storage()));
}

/// Frees a block of 16 KiB. Returns whether the allocator still counts it, because a stream uses it. The allocator
/// takes an unused block back at once.
bool kept_for_a_stream(at::Tensor tensor, bool used, std::int64_t offset) {
  if (used) copy_to_gpu(tensor.slice(0, offset));
  host_allocator().empty_cache();
  const auto active = allocator_active();
  tensor = at::Tensor();
  const bool kept = allocator_active() == active;
  host_allocator().empty_cache();
  CHECK(allocator_active() == active - 16_KiB);
  return kept;
}

TEST_CASE("a block in use by a stream is kept, with or without a listener, adopted or not, also for a slice") {
  for (const bool used : {false, true}) {
    for (const std::int64_t offset : {0, 100}) {
      CHECK(kept_for_a_stream(pinned(10'000), used, offset) == used);
      auto made_before = pinned(10'000);
      RecordingListener listener;
      const Subscription subscription(listener);
      CHECK(kept_for_a_stream(pinned(10'000), used, offset) == used);
      REQUIRE(adopt(made_before));
      CHECK(kept_for_a_stream(std::move(made_before), used, offset) == used);
    }
  }
}

TEST_CASE("pinned memory may outlive its listener and the program's static objects") {
  at::Tensor longer;
  static at::Tensor longest;  // Freed at exit.
  {
    RecordingListener listener;
    const Subscription subscription(listener);
    longer = pinned(70'000);
    longest = pinned(70'000);
    CHECK(find(longest));
  }
  const auto known = Registry::of_process().total(kCpu);
  longer = at::Tensor();
  CHECK(Registry::of_process().total(kCpu) == known - 131'072);
}

/// A user's host allocator that forwards to the previous one.
struct UsersHostAllocator final : at::HostAllocator {
  explicit UsersHostAllocator(at::HostAllocator& before) : before(before) {}
  c10::DataPtr allocate(std::size_t bytes) override { return before.allocate(bytes); }
  void copy_data(void* destination, const void* source, std::size_t bytes) const override {
    ++calls;
    before.copy_data(destination, source, bytes);
  }
  bool record_event(void* address, void* context, c10::Stream stream) override {
    ++calls;
    return before.record_event(address, context, stream);
  }
  void empty_cache() override { ++calls, before.empty_cache(); }
  at::HostStats get_stats() override { return ++calls, before.get_stats(); }
  void reset_accumulated_stats() override { ++calls, before.reset_accumulated_stats(); }
  void reset_peak_stats() override { ++calls, before.reset_peak_stats(); }
  void begin_allocate_to_pool(c10::MempoolId_t, std::function<bool(c10::Stream)>) override { ++calls; }
  void end_allocate_to_pool(c10::MempoolId_t) override { ++calls; }
  void release_pool(c10::MempoolId_t) override { ++calls; }

  at::HostAllocator& before;
  mutable int calls = 0;
};

TEST_CASE("a host allocator that is set later is tapped: it receives every call, and its memory is reported once") {
  auto& before = host_allocator();
  auto* const users = new UsersHostAllocator(before);  // Allocators are never destroyed.
  at::setHostAllocator(at::kCUDA, users);
  RecordingListener listener;
  const Subscription subscription(listener);
  const PinnedBytes counted(listener);
  CHECK(&host_allocator() != users);
  {
    const auto tensor = pinned(1000);
    CHECK(counted.pinned() == 1024);
    auto& tap = host_allocator();
    users->calls = 0;
    copy_to_gpu(tensor);
    CHECK(users->calls == 1);
    tap.empty_cache();
    tap.get_stats();
    tap.reset_accumulated_stats();
    tap.reset_peak_stats();
    tap.begin_allocate_to_pool({1, 0}, [](c10::Stream) { return true; });
    tap.end_allocate_to_pool({1, 0});
    tap.release_pool({1, 0});
    CHECK(users->calls == 8);
    CHECK_THROWS_AS(tap.copy_data(tensor.mutable_data_ptr(), tensor.const_data_ptr(), 0), c10::NotImplementedError);
    CHECK(users->calls == 9);  // torch's own copy_data is not implemented.
    CHECK_FALSE(static_cast<bool>(tap.raw_deleter()));
  }
  CHECK(counted.pinned() == 0);
  CHECK(listener.defects.empty());
  at::setHostAllocator(at::kCUDA, &before);
}

}  // namespace

}  // namespace plimsoll::capture::test_pinned
