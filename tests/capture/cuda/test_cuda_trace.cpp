#include <ATen/Functions.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <thread>
#include <vector>

#include "capture/recording_listener.h"
#include "plimsoll/capture/capture.h"
#include "plimsoll/capture/cuda_trace.h"
#include "plimsoll/capture/noted_storages.h"

namespace plimsoll::capture {

namespace {

namespace allocator = c10::cuda::CUDACachingAllocator;
const c10::Device kGpu(c10::kCUDA, 0);
const auto kOnGpu = at::TensorOptions().device(kGpu).dtype(at::kByte);
constexpr auto kAll = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);

Bytes allocator_active() { return allocator::getDeviceStats(0).active_bytes[kAll].current; }
std::int64_t allocator_reserved() { return allocator::getDeviceStats(0).reserved_bytes[kAll].current; }

/// Random sizes for the small and the large pool, with remainders that are split off and remainders that are not.
std::int64_t some_size(std::mt19937& random) {
  const std::int64_t limits[] = {600, 5000, 900'000, 1'300'000, 9'000'000, 30'000'000};
  return 1 + static_cast<std::int64_t>(random() % limits[random() % std::size(limits)]);
}

TEST_CASE("noted storages of a GPU are counted in addition to its allocator's blocks") {
  RecordingListener listener;
  const Subscription subscription(listener);
  const auto fake = at::empty({1000}, at::TensorOptions().device(c10::kMeta).dtype(at::kByte));
  note_storage(fake.storage(), kGpu, 1000);
  const auto tensor = at::empty({9'000'000}, kOnGpu);
  settle();
  CHECK(listener.total(kGpu) == allocator_active() + 1024);
  noted_storage_resized(fake.storage(), 100);
  const auto other = at::empty({600}, kOnGpu);
  settle();
  CHECK(listener.total(kGpu) == allocator_active() + 512);
  CHECK(listener.defects.empty());
}

TEST_CASE("the books equal the allocator's to the byte after every event") {
  RecordingListener listener;
  const Subscription subscription(listener);
  std::mt19937 random(11);
  std::vector<at::Tensor> tensors;
  const auto side_stream = c10::cuda::getStreamFromPool();
  for (int i = 0; i < 3000; ++i) {
    if (tensors.empty() || random() % 5 < 3) {
      const c10::cuda::CUDAStreamGuard guard(random() % 4 == 0 ? side_stream : c10::cuda::getDefaultCUDAStream());
      tensors.push_back(at::empty({some_size(random)}, kOnGpu));
      if (random() % 6 == 0) tensors.back().record_stream(side_stream);
    } else {
      std::swap(tensors[random() % tensors.size()], tensors.back());
      tensors.pop_back();
    }
    if (i % 500 == 499) allocator::emptyCache();
    if (i % 3 == 0) continue;  // Several events between two reads.
    settle();
    REQUIRE(listener.total(kGpu) == allocator_active());
    REQUIRE(listener.reserved["cuda:0"] == allocator_reserved());
  }
  CHECK(listener.resizes > 0);  // Some blocks had a remainder.
  tensors.clear();
  settle();
  CHECK(listener.total(kGpu) == allocator_active());
  CHECK(listener.defects.empty());
}

TEST_CASE("existing allocations are found, with the sizes of their blocks") {
  std::vector<at::Tensor> before;
  for (const auto size : {100, 2'500'000, 19'500'000}) before.push_back(at::empty({size}, kOnGpu));
  RecordingListener listener;
  const Subscription subscription(listener);
  settle();
  CHECK(listener.total(kGpu) == allocator_active());
  for (const auto& tensor : before) CHECK(find(tensor).has_value());
}

TEST_CASE("a read on one thread is exact while another thread allocates") {
  RecordingListener listener;
  const Subscription subscription(listener);
  std::atomic<bool> stop{false};
  std::thread worker([&] {
    std::mt19937 random(3);
    std::vector<at::Tensor> tensors(8);
    for (int i = 0; i < 3000; ++i) tensors[random() % tensors.size()] = at::empty({some_size(random)}, kOnGpu);
    stop = true;
  });
  while (!stop) settle();
  worker.join();
  settle();
  CHECK(listener.total(kGpu) == allocator_active());
  CHECK(listener.defects.empty());
}

TEST_CASE("a failed allocation does not change the books") {
  RecordingListener listener;
  const Subscription subscription(listener);
  settle();
  CHECK_THROWS_AS(at::empty({std::int64_t{1} << 50}, kOnGpu), c10::OutOfMemoryError);
  settle();
  CHECK(listener.total(kGpu) == allocator_active());
  CHECK(listener.defects.empty());
}

TEST_CASE("the trace works with torch's memory history enabled") {
  RecordingListener listener;
  const Subscription subscription(listener);
  allocator::recordHistory(true, nullptr, 1000, c10::CachingDeviceAllocator::RecordContext::NEVER, false, {});
  {
    const auto tensor = at::empty({1'700'000}, kOnGpu);
    settle();
    CHECK(listener.total(kGpu) == allocator_active());
    CHECK_FALSE(allocator::snapshot().device_traces.at(0).empty());
  }
  allocator::recordHistory(false, nullptr, 0, c10::CachingDeviceAllocator::RecordContext::NEVER, false, {});
  settle();
  CHECK(listener.total(kGpu) == allocator_active());
}

TEST_CASE("a matrix product's workspace is found") {
  RecordingListener listener;
  const Subscription subscription(listener);
  const auto version = cuda_workspaces_version();
  const auto square = at::empty({64, 64}, kOnGpu.dtype(at::kFloat));
  const auto product = at::matmul(square, square);
  settle();
  const auto workspaces = cuda_workspaces();
  REQUIRE_FALSE(workspaces.empty());
  CHECK(cuda_workspaces_version() != version);
  for (const auto& [device, address] : workspaces) CHECK(Registry::of_process().find(device, address).has_value());
}

TEST_CASE("the allocator's own total exists only for GPUs") {
  RecordingListener listener;
  const Subscription subscription(listener);
  CHECK(cuda_active_bytes(kGpu) == allocator_active());
  CHECK_FALSE(cuda_active_bytes(c10::Device(c10::kCPU)));
  CHECK_FALSE(cuda_active_bytes(c10::Device(c10::kCUDA, 100)));
}

}  // namespace

}  // namespace plimsoll::capture
