#include <ATen/Functions.h>
#include <c10/core/Storage.h>
#include <doctest/doctest.h>

#include <random>
#include <thread>
#include <vector>

#include "capture/counting_allocator.h"
#include "capture/recording_listener.h"
#include "plimsoll/capture/capture.h"

namespace plimsoll::capture {

namespace {

TEST_CASE("the tap's events equal the count of the allocator below it, also for frees on other threads") {
  RecordingListener listener;
  const Subscription subscription(listener);
  const auto heard_before = listener.total(kCpu);
  const auto counted_before = counted_cpu_bytes();
  std::mt19937 random(7);
  std::vector<at::Tensor> tensors;
  for (int i = 0; i < 2000; ++i) {
    if (tensors.empty() || random() % 3 != 0) {
      tensors.push_back(at::empty({static_cast<std::int64_t>(random() % 5000)}));
    } else {
      std::swap(tensors[random() % tensors.size()], tensors.back());
      if (i % 10 == 0) {
        std::thread([tensor = std::exchange(tensors.back(), at::Tensor())]() mutable { tensor = at::Tensor(); }).join();
      }
      tensors.pop_back();
    }
    REQUIRE(listener.total(kCpu) - heard_before == counted_cpu_bytes() - counted_before);
  }
  tensors.clear();
  CHECK(listener.total(kCpu) == heard_before);
  CHECK(listener.defects.empty());
}

TEST_CASE("the allocation and the free of a bare address are reported") {
  RecordingListener listener;
  const Subscription subscription(listener);
  const auto before = listener.total(kCpu);
  auto* const allocator = c10::GetAllocator(c10::kCPU);
  void* const address = allocator->raw_allocate(1000);
  CHECK(listener.total(kCpu) - before == 1000);
  allocator->raw_deallocate(address);
  CHECK(listener.total(kCpu) == before);
}

TEST_CASE("concurrent allocations are all reported") {
  RecordingListener listener;
  const Subscription subscription(listener);
  const auto heard_before = listener.total(kCpu);
  const auto counted_before = counted_cpu_bytes();
  std::vector<at::Tensor> kept(4);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&kept, t] {
      for (int i = 1; i < 500; ++i) kept[t] = at::empty({i * 10 + t});
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(listener.total(kCpu) - heard_before == counted_cpu_bytes() - counted_before);
  kept.clear();
  CHECK(listener.total(kCpu) == heard_before);
}

TEST_CASE("a resized storage counts its new memory") {
  RecordingListener listener;
  const Subscription subscription(listener);
  const auto before = listener.total(kCpu);
  auto tensor = at::empty({100});
  tensor.resize_({1000});
  CHECK(listener.total(kCpu) - before == 4000);
  REQUIRE(find(tensor));
  CHECK(find(tensor)->bytes == 4000);
}

TEST_CASE("a tensor made without listeners can be adopted; its free and resize are reported") {
  auto tensor = at::empty({256});  // The tap, if installed, has no listener.
  RecordingListener listener;
  const Subscription subscription(listener);
  const auto before = listener.total(kCpu);
  CHECK_FALSE(find(tensor));
  CHECK(listener.total(kCpu) == before);
  REQUIRE(adopt(tensor));
  CHECK(listener.total(kCpu) - before == 1024);
  CHECK(adopt(tensor)->id == find(tensor)->id);
  tensor.resize_({512});
  CHECK(listener.total(kCpu) - before == 2048);
  tensor = at::Tensor();
  CHECK(listener.total(kCpu) == before);
  CHECK(listener.defects.empty());
}

TEST_CASE("memory from no allocator cannot be adopted") {
  std::vector<float> blob(16);
  const auto tensor = at::from_blob(blob.data(), {16});
  RecordingListener listener;
  const Subscription subscription(listener);
  CHECK_FALSE(adopt(tensor));
  CHECK_FALSE(adopt(at::Tensor()));
  CHECK_FALSE(adopt(at::empty({0})));
  CHECK_FALSE(adopt(at::empty({4}, at::TensorOptions().device(at::kMeta))));
}

TEST_CASE("a late listener first receives the live allocations; an unsubscribed listener receives nothing") {
  RecordingListener first, second;
  const Subscription subscription(first);
  const auto kept = at::empty({300});
  {
    const Subscription later(second);
    CHECK(second.alive.contains(find(kept)->id));
    CHECK(second.total(kCpu) == first.total(kCpu));
  }
  const auto after = at::empty({100});
  CHECK(first.alive.contains(find(after)->id));
  CHECK_FALSE(second.alive.contains(find(after)->id));
}

}  // namespace

}  // namespace plimsoll::capture
