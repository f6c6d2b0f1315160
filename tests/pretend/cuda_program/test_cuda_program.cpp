// An ordinary program of the CUDA API, which cannot see that the GPU is a pretend GPU.

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <doctest/doctest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <span>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "plimsoll/base/bytes.h"
#include "plimsoll/pretend/model/control.h"
#include "plimsoll/pretend/model/control_c.h"

namespace test_cuda_program {

using namespace plimsoll::literals;
namespace control = plimsoll::pretend::control;
using plimsoll::pretend::Event;
using plimsoll::pretend::Happening;

extern "C" void __cudaRegisterFunction(void**, const char*, char*, const char*, int, uint3*, uint3*, dim3*, dim3*,
                                       int*);

namespace {

void kernel_stub() {}

std::vector<Event> listen_to(Happening kind, const auto& action) {
  std::vector<Event> events;
  const auto token =
      control::listen([&](const Event& event) { events.push_back(event); }, plimsoll::pretend::bit(kind));
  action();
  control::stop_listening(token);
  return events;
}

}  // namespace

TEST_CASE("memory is taken from the card's capacity and returned to it") {
  std::size_t free_before = 0;
  std::size_t total = 0;
  REQUIRE(cudaMemGetInfo(&free_before, &total) == cudaSuccess);
  CHECK(total == control::profile().memory);
  void* pointer = nullptr;
  REQUIRE(cudaMalloc(&pointer, 100_MiB) == cudaSuccess);
  std::size_t free_now = 0;
  cudaMemGetInfo(&free_now, &total);
  CHECK(free_now == free_before - 100_MiB);
  cudaPointerAttributes attributes{};
  REQUIRE(cudaPointerGetAttributes(&attributes, static_cast<char*>(pointer) + 5) == cudaSuccess);
  CHECK(attributes.type == cudaMemoryTypeDevice);
  CHECK(attributes.device == 0);
  REQUIRE(cudaFree(pointer) == cudaSuccess);
  CHECK(cudaFree(pointer) == cudaErrorInvalidValue);
  CHECK(cudaGetLastError() == cudaErrorInvalidValue);
  CHECK(cudaGetLastError() == cudaSuccess);
}

TEST_CASE("an allocation above the capacity fails with the driver's error and takes nothing") {
  const auto before = control::memory(0).used;
  void* pointer = &pointer;
  CHECK(cudaMalloc(&pointer, control::profile().memory) == cudaErrorMemoryAllocation);
  CHECK(pointer == nullptr);
  CHECK(std::string(cudaGetErrorString(cudaGetLastError())) == "out of memory");
  CHECK(control::memory(0).used == before);
}

TEST_CASE("a read-back writes zeros and is counted and reported; a copy between host buffers copies") {
  int value = 42;
  void* device = nullptr;
  REQUIRE(cudaMalloc(&device, sizeof value) == cudaSuccess);
  REQUIRE(cudaMemcpy(device, &value, sizeof value, cudaMemcpyHostToDevice) == cudaSuccess);
  const auto before = control::work().read_backs;
  const auto events = listen_to(Happening::kReadBack, [&] {
    REQUIRE(cudaMemcpy(&value, device, sizeof value, cudaMemcpyDeviceToHost) == cudaSuccess);
  });
  CHECK(value == 0);
  CHECK(control::work().read_backs == before + 1);
  REQUIRE(events.size() == 1);
  CHECK(events[0].bytes == sizeof value);
  int source = 7;
  REQUIRE(cudaMemcpy(&value, &source, sizeof value, cudaMemcpyDefault) == cudaSuccess);
  CHECK(value == 7);
  cudaFree(device);
}

TEST_CASE("an answered read-back writes the answer once and is not counted") {
  int value = 42;
  void* device = nullptr;
  REQUIRE(cudaMalloc(&device, sizeof value) == cudaSuccess);
  const auto before = control::work().read_backs;
  const auto copy = [&](std::size_t bytes) {
    value = 42;
    REQUIRE(cudaMemcpy(&value, device, bytes, cudaMemcpyDeviceToHost) == cudaSuccess);
    return value;
  };
  const int known = 7;
  control::answer_next_read_back(std::as_bytes(std::span(&known, 1)));
  CHECK(copy(sizeof value) == 7);
  CHECK(control::work().read_backs == before);
  CHECK(copy(sizeof value) == 0);
  control::answer_next_read_back(std::as_bytes(std::span(&known, 1)));
  CHECK(copy(1) == (42 & ~0xff));  // Of another size.
  CHECK(copy(sizeof value) == 0);
  control::answer_next_read_back(std::as_bytes(std::span(&known, 1)));
  std::thread([&] { CHECK(copy(sizeof value) == 0); }).join();  // On another thread.
  control::answer_next_read_back({});
  CHECK(copy(sizeof value) == 0);
  CHECK(control::work().read_backs == before + 5);
  cudaFree(device);
}

TEST_CASE("a launch is recorded with its name, its shape and its stream") {
  __cudaRegisterFunction(nullptr, reinterpret_cast<const char*>(&kernel_stub), nullptr, "my_kernel", -1, nullptr,
                         nullptr, nullptr, nullptr, nullptr);
  cudaStream_t stream = nullptr;
  REQUIRE(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, -1) == cudaSuccess);
  std::string name;
  const auto token =
      control::listen([&](const Event& event) { name = event.name; }, plimsoll::pretend::bit(Happening::kLaunch));
  const auto events = listen_to(Happening::kLaunch, [&] {
    REQUIRE(cudaLaunchKernel(reinterpret_cast<const void*>(&kernel_stub), dim3(2, 3, 4), dim3(128), nullptr, 64,
                             stream) == cudaSuccess);
  });
  control::stop_listening(token);
  REQUIRE(events.size() == 1);
  CHECK(name == "my_kernel");
  CHECK(events[0].grid[2] == 4);
  CHECK(events[0].block[0] == 128);
  CHECK(events[0].shared == 64);
  CHECK(events[0].stream != 0);
  REQUIRE(cudaStreamDestroy(stream) == cudaSuccess);
  CHECK(cudaStreamSynchronize(stream) == cudaErrorInvalidResourceHandle);
  cudaGetLastError();
}

TEST_CASE("a captured step can be instantiated and replayed; a synchronisation during capture is refused") {
  cudaStream_t stream = nullptr;
  REQUIRE(cudaStreamCreate(&stream) == cudaSuccess);
  const auto step = [&] {
    return cudaLaunchKernel(reinterpret_cast<const void*>(&kernel_stub), dim3(1), dim3(1), nullptr, 0, stream);
  };
  REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal) == cudaSuccess);
  REQUIRE(step() == cudaSuccess);
  int host_calls = 0;
  REQUIRE(cudaLaunchHostFunc(stream, [](void* count) { ++*static_cast<int*>(count); }, &host_calls) == cudaSuccess);
  CHECK(host_calls == 0);
  cudaGraph_t graph = nullptr;
  REQUIRE(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
  cudaGraphExec_t executable = nullptr;
  REQUIRE(cudaGraphInstantiateWithFlags(&executable, graph, 0) == cudaSuccess);
  REQUIRE(cudaGraphDestroy(graph) == cudaSuccess);
  const auto launches = control::work().launches;
  REQUIRE(cudaGraphLaunch(executable, stream) == cudaSuccess);
  REQUIRE(cudaGraphLaunch(executable, stream) == cudaSuccess);
  CHECK(control::work().launches == launches + 2);
  CHECK(host_calls == 2);
  REQUIRE(cudaGraphExecDestroy(executable) == cudaSuccess);

  REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal) == cudaSuccess);
  CHECK(cudaStreamSynchronize(stream) == cudaErrorStreamCaptureUnsupported);
  CHECK(cudaStreamEndCapture(stream, &graph) == cudaErrorStreamCaptureInvalidated);
  CHECK(graph == nullptr);
  CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
  cudaGetLastError();
  cudaStreamDestroy(stream);
}

TEST_CASE("an expandable segment grows by mapping and shrinks by unmapping") {
  const auto before = control::memory(0).used;
  CUdeviceptr range = 0;
  REQUIRE(cuMemAddressReserve(&range, 1_GiB, 0, 0, 0) == CUDA_SUCCESS);
  CHECK(control::memory(0).used == before);
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  CUmemGenericAllocationHandle handle = 0;
  REQUIRE(cuMemCreate(&handle, 20_MiB, &properties, 0) == CUDA_SUCCESS);
  REQUIRE(cuMemMap(range, 20_MiB, 0, handle, 0) == CUDA_SUCCESS);
  CHECK(control::memory(0).used == before + 20_MiB);
  REQUIRE(cuMemUnmap(range, 20_MiB) == CUDA_SUCCESS);
  REQUIRE(cuMemRelease(handle) == CUDA_SUCCESS);
  CHECK(control::memory(0).used == before);
  REQUIRE(cuMemAddressFree(range, 1_GiB) == CUDA_SUCCESS);
  CHECK(cuMemCreate(&handle, 1_MiB, &properties, 0) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("peer access is possible between any two cards and can be enabled once") {
  REQUIRE(control::device_count() >= 2);
  int can = 0;
  REQUIRE(cudaDeviceCanAccessPeer(&can, 0, 1) == cudaSuccess);
  CHECK(can == 1);
  cudaSetDevice(0);
  CHECK(cudaDeviceEnablePeerAccess(1, 0) == cudaSuccess);
  CHECK(cudaDeviceEnablePeerAccess(1, 0) == cudaErrorPeerAccessAlreadyEnabled);
  CHECK(cudaDeviceDisablePeerAccess(1) == cudaSuccess);
  CHECK(cudaSetDevice(control::device_count()) == cudaErrorInvalidDevice);
  cudaGetLastError();
}

TEST_CASE("the driver's functions are found by name, in the version that torch requests") {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult result{};
  REQUIRE(cudaGetDriverEntryPointByVersion("cuMemCreate", &function, 12000, 0, &result) == cudaSuccess);
  CHECK(function != nullptr);
  CHECK(cudaGetDriverEntryPointByVersion("cuNoSuchThing", &function, 12000, 0, &result) == cudaSuccess);
  CHECK(function == nullptr);
  CHECK(result == cudaDriverEntryPointSymbolNotFound);
  CHECK(cudaGetLastError() == cudaSuccess);
}

TEST_CASE("a driver function with a second version also exists under its older name") {
  void* const found = dlsym(RTLD_DEFAULT, "cuStreamWriteValue32");
  REQUIRE(found != nullptr);
  auto* const write = reinterpret_cast<CUresult (*)(CUstream, CUdeviceptr, cuuint32_t, unsigned)>(found);
  void* device = nullptr;
  REQUIRE(cudaMalloc(&device, 4) == cudaSuccess);
  CHECK(write(nullptr, reinterpret_cast<CUdeviceptr>(device), 1, 0) == CUDA_SUCCESS);
  cudaFree(device);
}

TEST_CASE("runtime and driver have a name and a text for each error") {
  CHECK(std::string(cudaGetErrorName(cudaErrorNotReady)) == "cudaErrorNotReady");
  CHECK(std::string(cudaGetErrorString(cudaErrorNotReady)) == "not ready");
  CHECK(std::string(cudaGetErrorName(static_cast<cudaError_t>(12345))) == "unrecognized error code");
  CHECK(std::string(cudaGetErrorString(static_cast<cudaError_t>(12345))) == "unrecognized error code");
  const char* text = nullptr;
  CHECK(cuGetErrorName(CUDA_ERROR_OUT_OF_MEMORY, &text) == CUDA_SUCCESS);
  CHECK(std::string(text) == "CUDA_ERROR_OUT_OF_MEMORY");
  CHECK(cuGetErrorString(CUDA_ERROR_OUT_OF_MEMORY, &text) == CUDA_SUCCESS);
  CHECK(std::string(text) == "out of memory");
  CHECK(cuGetErrorName(static_cast<CUresult>(12345), &text) == CUDA_ERROR_INVALID_VALUE);
  CHECK(text == nullptr);
  CHECK(cuGetErrorString(static_cast<CUresult>(12345), &text) == CUDA_ERROR_INVALID_VALUE);
  CHECK(text == nullptr);
}

TEST_CASE("threads on several cards do not affect each other") {
  constexpr int kThreads = 8;
  constexpr int kRounds = 200;
  std::atomic<int> failures{0};
  std::atomic<std::uint64_t> reported{0};
  const auto token = control::listen([&](const Event&) { ++reported; }, plimsoll::pretend::bit(Happening::kLaunch));
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      const auto check = [&](bool ok) { failures += ok ? 0 : 1; };
      check(cudaSetDevice(t % control::device_count()) == cudaSuccess);
      cudaStream_t stream = nullptr;
      cudaEvent_t event = nullptr;
      check(cudaStreamCreate(&stream) == cudaSuccess);
      for (int i = 0; i < kRounds; ++i) {
        void* pointer = nullptr;
        void* pooled = nullptr;
        check(cudaEventCreate(&event) == cudaSuccess);
        check(cudaMalloc(&pointer, 2_MiB) == cudaSuccess);
        check(cudaMallocAsync(&pooled, 1_MiB, stream) == cudaSuccess);
        check(cudaLaunchKernel(reinterpret_cast<const void*>(&kernel_stub), dim3(1), dim3(1), nullptr, 0, stream) ==
              cudaSuccess);
        check(cudaEventRecord(event, stream) == cudaSuccess);
        check(cudaStreamSynchronize(stream) == cudaSuccess);
        check(cudaEventQuery(event) == cudaSuccess);
        check(cudaFreeAsync(pooled, stream) == cudaSuccess);
        check(cudaFree(pointer) == cudaSuccess);
        check(cudaEventDestroy(event) == cudaSuccess);
      }
      check(cudaStreamDestroy(stream) == cudaSuccess);
    });
  }
  for (auto& thread : threads) thread.join();
  control::stop_listening(token);
  CHECK(failures == 0);
  CHECK(reported == kThreads * kRounds);
}

TEST_CASE("the events of streams are written to a file until the log is closed") {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("plimsoll_work_" + std::to_string(getpid()))).string();
  REQUIRE(plimsoll_log_work(path.c_str()) == 0);
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  cudaStreamCreate(&stream);
  cudaEventCreate(&event);
  cudaEventRecord(event, stream);
  cudaStreamWaitEvent(nullptr, event, 0);
  cudaEventSynchronize(event);
  REQUIRE(plimsoll_log_work(nullptr) == 0);
  cudaEventRecord(event, stream);
  std::ifstream file(path);
  std::vector<std::string> kinds;
  std::vector<std::uint64_t> streams, marks;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string kind;
    std::uint64_t device = 0, on = 0, mark = 0;
    words >> kind >> device >> on >> mark;
    kinds.push_back(kind);
    streams.push_back(on);
    marks.push_back(mark);
  }
  std::filesystem::remove(path);
  CHECK(kinds == std::vector<std::string>{"record", "wait", "synchronize"});
  CHECK(streams[0] != 0);
  CHECK(streams[1] == 0);
  CHECK(marks[0] != 0);
  CHECK(marks == std::vector<std::uint64_t>(3, marks[0]));
  CHECK(plimsoll_log_work("/no/such/folder/log") == -1);
  cudaEventDestroy(event);
  cudaStreamDestroy(stream);
}

}  // namespace test_cuda_program
