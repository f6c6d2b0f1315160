// Many threads on several cards: captures, virtual memory, pinned memory and queries at the same time.

#include <atomic>
#include <thread>

#include "pretend/cuda_program/program.h"

namespace test_threads {

using namespace program;

namespace {

constexpr int kRounds = 60;

/// Counts failures; doctest's checks are too slow for threads under the thread sanitizer.
class Failures {
 public:
  void check(bool ok) { count_ += ok ? 0 : 1; }
  int count() const { return count_; }

 private:
  std::atomic<int> count_{0};
};

/// Captures a fork and its join, and launches the graph, many times.
void capture(int device, Failures& failures) {
  const auto ok = [&](cudaError_t error) { failures.check(error == cudaSuccess); };
  ok(cudaSetDevice(device));
  cudaStream_t origin = nullptr, side = nullptr;
  ok(cudaStreamCreate(&origin));
  ok(cudaStreamCreate(&side));
  for (int round = 0; round < kRounds; ++round) {
    cudaEvent_t fork = nullptr, join = nullptr;
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    ok(cudaEventCreate(&fork));
    ok(cudaEventCreate(&join));
    ok(cudaStreamBeginCapture(origin, cudaStreamCaptureModeThreadLocal));
    ok(launch_on(origin));
    ok(cudaEventRecord(fork, origin));
    ok(cudaStreamWaitEvent(side, fork, 0));
    ok(launch_on(side));
    ok(cudaEventRecord(join, side));
    ok(cudaStreamWaitEvent(origin, join, 0));
    ok(launch_on(origin));
    ok(cudaStreamEndCapture(origin, &graph));
    ok(cudaGraphInstantiateWithFlags(&executable, graph, 0));
    ok(cudaGraphLaunch(executable, origin));
    ok(cudaStreamSynchronize(origin));
    ok(cudaGraphExecDestroy(executable));
    ok(cudaGraphDestroy(graph));
    ok(cudaEventDestroy(fork));
    ok(cudaEventDestroy(join));
  }
  ok(cudaStreamDestroy(side));
  ok(cudaStreamDestroy(origin));
}

/// Grows and shrinks an expandable segment.
void map_and_unmap(int device, Failures& failures) {
  const auto ok = [&](CUresult result) { failures.check(result == CUDA_SUCCESS); };
  failures.check(cudaSetDevice(device) == cudaSuccess);
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = device;
  CUdeviceptr range = 0;
  ok(cuMemAddressReserve(&range, 64_MiB, 0, 0, 0));
  for (int round = 0; round < kRounds; ++round) {
    CUmemGenericAllocationHandle handle = 0, again = 0;
    ok(cuMemCreate(&handle, 4_MiB, &properties, 0));
    ok(cuMemMap(range, 4_MiB, 0, handle, 0));
    ok(cuMemSetAccess(range, 4_MiB, nullptr, 0));
    ok(cuMemRetainAllocationHandle(&again, reinterpret_cast<void*>(range)));
    failures.check(again == handle);
    ok(cuMemRelease(again));
    ok(cuMemRelease(handle));
    ok(cuMemUnmap(range, 4_MiB));
  }
  ok(cuMemAddressFree(range, 64_MiB));
}

/// Pins host memory, copies to the card and back, and queries pointers.
void pin_and_copy(int device, Failures& failures) {
  const auto ok = [&](cudaError_t error) { failures.check(error == cudaSuccess); };
  ok(cudaSetDevice(device));
  cudaStream_t stream = nullptr;
  void* on_card = nullptr;
  std::vector<char> own(4096);
  ok(cudaStreamCreate(&stream));
  ok(cudaMalloc(&on_card, 4096));
  for (int round = 0; round < kRounds; ++round) {
    void* pinned = nullptr;
    ok(cudaHostAlloc(&pinned, 4096, 0));
    ok(cudaHostRegister(own.data(), own.size(), 0));
    ok(cudaMemsetAsync(pinned, 1, 4096, stream));
    ok(cudaMemcpyAsync(on_card, pinned, 4096, cudaMemcpyDefault, stream));
    ok(cudaMemcpyAsync(pinned, on_card, 4096, cudaMemcpyDefault, stream));
    failures.check(static_cast<char*>(pinned)[4095] == 0);
    cudaPointerAttributes attributes{};
    ok(cudaPointerGetAttributes(&attributes, pinned));
    failures.check(attributes.type == cudaMemoryTypeHost && attributes.device == device);
    ok(cudaHostUnregister(own.data()));
    ok(cudaFreeHost(pinned));
  }
  ok(cudaFree(on_card));
  ok(cudaStreamDestroy(stream));
}

}  // namespace

TEST_CASE("captures, virtual memory and pinned memory of many threads on several cards are independent") {
  std::vector<plimsoll::Bytes> used;
  for (int device = 0; device < control::device_count(); ++device) {
    const OnDevice on(device);  // Creates its context and empties its pools before the count.
    REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
    used.push_back(control::memory(device).used);
  }
  const auto pinned = control::host().pinned;
  const auto launches = control::work().launches;
  std::atomic<std::uint64_t> replayed{0};
  const auto token = control::listen([&](const plimsoll::pretend::Event& event) { replayed += event.replayed ? 1 : 0; },
                                     plimsoll::pretend::bit(Happening::kLaunch));
  Failures failures;
  std::vector<std::thread> threads;
  for (int device = 0; device < control::device_count(); ++device) {
    for (auto* work : {&capture, &capture, &map_and_unmap, &pin_and_copy}) {
      threads.emplace_back([work, device, &failures] { work(device, failures); });
    }
  }
  for (std::thread& thread : threads) thread.join();
  control::stop_listening(token);
  CHECK(failures.count() == 0);
  const auto expected = static_cast<std::uint64_t>(control::device_count()) * 2 * kRounds * 3;  // Of 3 kernels each.
  CHECK(replayed == expected);
  CHECK(control::work().launches == launches + expected);
  CHECK(control::host().pinned == pinned);
  for (int device = 0; device < control::device_count(); ++device) {
    CHECK(control::memory(device).used == used[static_cast<std::size_t>(device)]);
  }
}

}  // namespace test_threads
