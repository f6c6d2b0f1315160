#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "plimsoll/pretend/model/control.h"
#include "plimsoll/pretend/model/library_call.h"
#include "plimsoll/pretend/model/machine.h"
#include "pretend/recorder.h"

using namespace plimsoll::pretend;

extern "C" {
int cublasCreate_v2(void**);
int cublasDestroy_v2(void*);
int cublasSetStream_v2(void*, void*);
int cublasGetStream_v2(void*, void**);
int cublasSetWorkspace_v2(void*, void*, std::size_t);
int cublasSetMathMode(void*, int);
int cublasGetMathMode(void*, int*);
int cublasSetPointerMode_v2(void*, int);
int cublasGetPointerMode_v2(void*, int*);
int cublasSetSmCountTarget(void*, int);
int cublasGetVersion_v2(void*, int*);
int cublasSgemm_v2(void*, int, int, int, int, int, const float*, const float*, int, const float*, int, const float*,
                   float*, int);
int cublasDgemv_v2(void*, int, int, int, const double*, const double*, int, const double*, int, const double*, double*,
                   int);
int cublasSgemmStridedBatched(void*, int, int, int, int, int, const float*, const float*, int, long long, const float*,
                              int, long long, const float*, float*, int, long long, int);
int cublasGemmEx(void*, int, int, int, int, int, const void*, const void*, int, int, const void*, int, int, const void*,
                 void*, int, int, int, int);
int cublasGemmStridedBatchedEx(void*, int, int, int, int, int, const void*, const void*, int, int, long long,
                               const void*, int, int, long long, const void*, void*, int, int, long long, int, int,
                               int);
int cublasGemmGroupedBatchedEx(void*, const int*, const int*, const int*, const int*, const int*, const void*,
                               const void* const*, int, const int*, const void* const*, int, const int*, const void*,
                               void* const*, int, const int*, int, const int*, int);
int cublasSdot_v2(void*, int, const float*, int, const float*, int, float*);
int cublasIsamax_v2(void*, int, const float*, int, int*);
int cublasStrsm_v2(void*, int, int, int, int, int, int, const float*, const float*, int, float*, int);
int cublasSgetrsBatched(void*, int, int, int, const float* const*, int, const int*, float* const*, int, int*, int);
int cublasGetMatrixAsync(int, int, int, const void*, int, void*, int, void*);
int cublasSetMatrixAsync(int, int, int, const void*, int, void*, int, void*);
}

namespace {

constexpr int kSuccess = 0;
constexpr int kNotInitialized = 1;
constexpr int kAllocFailed = 3;
constexpr int kInvalidValue = 7;

struct Handle {
  Handle() { REQUIRE(cublasCreate_v2(&value) == kSuccess); }
  ~Handle() { cublasDestroy_v2(value); }
  void* value = nullptr;
};

plimsoll::Bytes handle_bytes() { return control::memory(0).used_by[static_cast<int>(Reason::kHandles)]; }

void check_gemm(const Recorder::Entry& entry, const std::string& name, std::array<std::int64_t, 4> mnkb) {
  CHECK(entry.event.kind == Happening::kGemm);
  CHECK(entry.name == name);
  CHECK(entry.event.m == mnkb[0]);
  CHECK(entry.event.n == mnkb[1]);
  CHECK(entry.event.k == mnkb[2]);
  CHECK(entry.event.batch == mnkb[3]);
}

}  // namespace

TEST_CASE("a handle takes the profile's bytes and frees them") {
  const auto before = handle_bytes();
  void* handle = nullptr;
  REQUIRE(cublasCreate_v2(&handle) == kSuccess);
  CHECK(handle_bytes() == before + control::profile().cublas_handle);
  CHECK(machine().device(0).has_context());
  CHECK(cublasDestroy_v2(handle) == kSuccess);
  CHECK(handle_bytes() == before);
}

TEST_CASE("a handle that does not fit is refused and takes nothing") {
  Handle first;  // Creates the context.
  const auto counters = control::memory(0);
  const auto rest = counters.capacity - counters.used;
  REQUIRE(charge(0, rest, Reason::kSegments));
  void* handle = nullptr;
  CHECK(cublasCreate_v2(&handle) == (control::profile().cublas_handle > 0 ? kAllocFailed : kSuccess));
  CHECK(handle == nullptr);
  discharge(0, rest, Reason::kSegments);
  CHECK(control::memory(0).used == counters.used);
}

TEST_CASE("an invalid handle is refused") {
  std::uint64_t junk[32] = {};
  int value = 0;
  CHECK(cublasCreate_v2(nullptr) == kInvalidValue);
  CHECK(cublasDestroy_v2(nullptr) == kNotInitialized);
  CHECK(cublasGetMathMode(junk, &value) == kNotInitialized);
  CHECK(cublasSgemm_v2(nullptr, 0, 0, 1, 1, 1, nullptr, nullptr, 1, nullptr, 1, nullptr, nullptr, 1) ==
        kNotInitialized);
}

TEST_CASE("modes are returned as they were set") {
  Handle handle;
  int mode = -1;
  CHECK(cublasGetMathMode(handle.value, &mode) == kSuccess);
  CHECK(mode == 0);
  CHECK(cublasSetMathMode(handle.value, 3 | 16) == kSuccess);
  CHECK(cublasGetMathMode(handle.value, &mode) == kSuccess);
  CHECK(mode == 19);
  CHECK(cublasSetPointerMode_v2(handle.value, 1) == kSuccess);
  CHECK(cublasGetPointerMode_v2(handle.value, &mode) == kSuccess);
  CHECK(mode == 1);
  CHECK(cublasSetPointerMode_v2(handle.value, 2) == kInvalidValue);
  CHECK(cublasSetSmCountTarget(handle.value, 100) == kSuccess);
  CHECK(cublasGetVersion_v2(handle.value, &mode) == kSuccess);
  CHECK(mode / 10000 == PLIMSOLL_CUDA_MAJOR);
  DeviceBuffer workspace(1 << 20);
  CHECK(cublasSetWorkspace_v2(handle.value, workspace.get(), 1 << 20) == kSuccess);
  CHECK(cublasSetWorkspace_v2(handle.value, workspace.get<char>() + 1, 1 << 10) == kInvalidValue);
}

TEST_CASE("work goes to the handle's stream") {
  Handle handle;
  Stream* stream = machine().create_stream(0, 0, 0);
  CHECK(cublasSetStream_v2(handle.value, stream) == kSuccess);
  void* set = nullptr;
  CHECK(cublasGetStream_v2(handle.value, &set) == kSuccess);
  CHECK(set == stream);
  Recorder recorder;
  CHECK(cublasStrsm_v2(handle.value, 0, 0, 0, 0, 2, 2, nullptr, nullptr, 2, nullptr, 2) == kSuccess);
  const auto entries = recorder.take();
  REQUIRE(entries.size() == 1);
  CHECK(entries[0].event.kind == Happening::kCall);
  CHECK(entries[0].name == "cublasStrsm_v2");
  CHECK(entries[0].event.stream == stream->id);
  cublasSetStream_v2(handle.value, nullptr);
  machine().destroy_stream(stream);
}

TEST_CASE("every kind of product reports its sizes") {
  Handle handle;
  Recorder recorder;
  CHECK(cublasSgemm_v2(handle.value, 0, 1, 2, 3, 4, nullptr, nullptr, 2, nullptr, 3, nullptr, nullptr, 2) == kSuccess);
  CHECK(cublasSgemmStridedBatched(handle.value, 0, 0, 5, 6, 7, nullptr, nullptr, 5, 35, nullptr, 7, 42, nullptr,
                                  nullptr, 5, 30, 8) == kSuccess);
  CHECK(cublasGemmEx(handle.value, 0, 0, 9, 10, 11, nullptr, nullptr, 14, 9, nullptr, 14, 11, nullptr, nullptr, 14, 9,
                     68, -1) == kSuccess);
  CHECK(cublasGemmStridedBatchedEx(handle.value, 0, 0, 12, 13, 14, nullptr, nullptr, 2, 12, 168, nullptr, 2, 14, 182,
                                   nullptr, nullptr, 2, 12, 156, 15, 68, -1) == kSuccess);
  CHECK(cublasDgemv_v2(handle.value, 0, 16, 17, nullptr, nullptr, 16, nullptr, 1, nullptr, nullptr, 1) == kSuccess);
  CHECK(cublasDgemv_v2(handle.value, 1, 16, 17, nullptr, nullptr, 16, nullptr, 1, nullptr, nullptr, 1) == kSuccess);
  const int ops[] = {0, 0}, m[] = {1, 4}, n[] = {2, 5}, k[] = {3, 6}, group_sizes[] = {7, 8};
  CHECK(cublasGemmGroupedBatchedEx(handle.value, ops, ops, m, n, k, nullptr, nullptr, 14, m, nullptr, 14, k, nullptr,
                                   nullptr, 14, m, 2, group_sizes, 68) == kSuccess);
  const auto entries = recorder.take();
  REQUIRE(entries.size() == 8);
  check_gemm(entries[0], "cublasSgemm_v2", {2, 3, 4, 1});
  check_gemm(entries[1], "cublasSgemmStridedBatched", {5, 6, 7, 8});
  check_gemm(entries[2], "cublasGemmEx", {9, 10, 11, 1});
  check_gemm(entries[3], "cublasGemmStridedBatchedEx", {12, 13, 14, 15});
  check_gemm(entries[4], "cublasDgemv_v2", {16, 1, 17, 1});
  check_gemm(entries[5], "cublasDgemv_v2", {17, 1, 16, 1});
  check_gemm(entries[6], "cublasGemmGroupedBatchedEx", {1, 2, 3, 7});
  check_gemm(entries[7], "cublasGemmGroupedBatchedEx", {4, 5, 6, 8});
  CHECK(cublasSgemm_v2(handle.value, 0, 0, -1, 3, 4, nullptr, nullptr, 2, nullptr, 3, nullptr, nullptr, 2) ==
        kInvalidValue);
}

TEST_CASE("a host result is a read-back of zero; a device result is not touched") {
  Handle handle;
  DeviceBuffer device(1 << 20);
  float dot = 5;
  const auto before = control::work().read_backs;
  CHECK(cublasSdot_v2(handle.value, 4, device.get<float>(), 1, device.get<float>(), 1, &dot) == kSuccess);
  CHECK(dot == 0);
  int place = 5;
  CHECK(cublasIsamax_v2(handle.value, 4, device.get<float>(), 1, &place) == kSuccess);
  CHECK(place == 1);
  CHECK(cublasIsamax_v2(handle.value, 0, device.get<float>(), 1, &place) == kSuccess);
  CHECK(place == 0);
  CHECK(control::work().read_backs == before + 3);
  CHECK(cublasSetPointerMode_v2(handle.value, 1) == kSuccess);
  CHECK(cublasSdot_v2(handle.value, 4, device.get<float>(), 1, device.get<float>(), 1, device.get<float>()) ==
        kSuccess);
  CHECK(control::work().read_backs == before + 3);
}

TEST_CASE("a batched solve reports valid arguments") {
  Handle handle;
  int info = 7;
  CHECK(cublasSgetrsBatched(handle.value, 0, 3, 1, nullptr, 3, nullptr, nullptr, 3, &info, 2) == kSuccess);
  CHECK(info == 0);
}

TEST_CASE("a fetched matrix has zeros in its rows and unchanged gaps") {
  DeviceBuffer device(1 << 20);
  std::vector<float> host(3 * 4, 1.0F);
  Recorder recorder;
  CHECK(cublasGetMatrixAsync(2, 3, sizeof(float), device.get(), 2, host.data(), 4, nullptr) == kSuccess);
  for (int i = 0; i < 12; ++i) CHECK(host[static_cast<std::size_t>(i)] == (i % 4 < 2 ? 0.0F : 1.0F));
  CHECK(cublasSetMatrixAsync(2, 3, sizeof(float), host.data(), 4, device.get(), 2, nullptr) == kSuccess);
  const auto entries = recorder.take();
  REQUIRE(entries.size() == 2);
  CHECK(entries[0].event.kind == Happening::kReadBack);
  CHECK(entries[0].event.bytes == 24);
  CHECK(entries[1].event.kind == Happening::kCopy);
  CHECK(entries[1].event.bytes == 24);
  CHECK(cublasGetMatrixAsync(5, 3, sizeof(float), device.get(), 5, host.data(), 4, nullptr) == kInvalidValue);
}

TEST_CASE("several threads share a handle") {
  Handle handle;
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        int mode = 0;
        failures += cublasSetMathMode(handle.value, i % 4) != kSuccess;
        failures += cublasGetMathMode(handle.value, &mode) != kSuccess;
        failures += cublasSgemm_v2(handle.value, 0, 0, 2, 2, 2, nullptr, nullptr, 2, nullptr, 2, nullptr, nullptr, 2) !=
                    kSuccess;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(failures == 0);
}
