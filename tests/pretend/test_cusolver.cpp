#include <doctest/doctest.h>

#include <cstdint>

#include "pretend/recorder.h"

using namespace plimsoll::pretend;

extern "C" {
int cusolverDnCreate(void**);
int cusolverDnDestroy(void*);
int cusolverDnSetStream(void*, void*);
int cusolverDnGetStream(void*, void**);
int cusolverDnCreateParams(void**);
int cusolverDnDestroyParams(void*);
int cusolverDnCreateGesvdjInfo(void**);
int cusolverDnDestroyGesvdjInfo(void*);
int cusolverDnXgesvdjSetTolerance(void*, double);
int cusolverDnXgesvdjSetMaxSweeps(void*, int);
int cusolverDnXgesvdjSetSortEig(void*, int);
int cusolverDnCreateSyevjInfo(void**);
int cusolverDnDestroySyevjInfo(void*);
int cusolverDnSgetrf_bufferSize(void*, int, int, float*, int, int*);
int cusolverDnSgetrf(void*, int, int, float*, int, float*, int*, int*);
int cusolverDnCunmqr_bufferSize(void*, int, int, int, int, int, const void*, int, const void*, const void*, int, int*);
int cusolverDnDsyevjBatched_bufferSize(void*, int, int, int, const double*, int, const double*, int*, void*, int);
int cusolverDnZgesvdj_bufferSize(void*, int, int, int, int, const void*, int, const double*, const void*, int,
                                 const void*, int, int*, void*);
int cusolverDnSgesvdaStridedBatched_bufferSize(void*, int, int, int, int, const float*, int, long long, const float*,
                                               long long, const float*, int, long long, const float*, int, long long,
                                               int*, int);
int cusolverDnSgesvdaStridedBatched(void*, int, int, int, int, const float*, int, long long, float*, long long, float*,
                                    int, long long, float*, int, long long, float*, int, int*, double*, int);
int cusolverDnXgeqrf_bufferSize(void*, void*, std::int64_t, std::int64_t, int, const void*, std::int64_t, int,
                                const void*, int, std::size_t*, std::size_t*);
int cusolverDnXsyevBatched_bufferSize(void*, void*, int, int, std::int64_t, int, const void*, std::int64_t, int,
                                      const void*, int, std::size_t*, std::size_t*, std::int64_t);
int cusolverDnXgeev_bufferSize(void*, void*, int, int, std::int64_t, int, const void*, std::int64_t, int, const void*,
                               int, const void*, std::int64_t, int, const void*, std::int64_t, int, std::size_t*,
                               std::size_t*);
}

namespace {

constexpr int kSuccess = 0;
constexpr int kNotInitialized = 1;
constexpr int kInvalidValue = 3;

struct Handle {
  Handle() {
    REQUIRE(cusolverDnCreate(&value) == kSuccess);
    REQUIRE(cusolverDnCreateParams(&params) == kSuccess);
  }
  ~Handle() {
    cusolverDnDestroyParams(params);
    cusolverDnDestroy(value);
  }
  void* value = nullptr;
  void* params = nullptr;
};

}  // namespace

TEST_CASE("a factorisation returns its workspace and runs on the handle's stream") {
  Handle handle;
  Stream* stream = machine().create_stream(0, 0, 0);
  CHECK(cusolverDnSetStream(handle.value, stream) == kSuccess);
  void* set = nullptr;
  CHECK(cusolverDnGetStream(handle.value, &set) == kSuccess);
  CHECK(set == stream);
  int lwork = 0;
  CHECK(cusolverDnSgetrf_bufferSize(handle.value, 100, 50, nullptr, 100, &lwork) == kSuccess);
  CHECK(lwork == 100 * 64);
  Recorder recorder;
  CHECK(cusolverDnSgetrf(handle.value, 100, 50, nullptr, 100, nullptr, nullptr, nullptr) == kSuccess);
  const auto entries = recorder.take();
  REQUIRE(entries.size() == 1);
  CHECK(entries[0].name == "cusolverDnSgetrf");
  CHECK(entries[0].event.stream == stream->id);
  machine().destroy_stream(stream);
}

TEST_CASE("a workspace is never empty or negative") {
  Handle handle;
  int lwork = 0;
  CHECK(cusolverDnSgetrf_bufferSize(handle.value, 0, 0, nullptr, 1, &lwork) == kSuccess);
  CHECK(lwork == 1);
  void* info = nullptr;
  REQUIRE(cusolverDnCreateSyevjInfo(&info) == kSuccess);
  CHECK(cusolverDnDsyevjBatched_bufferSize(handle.value, 1, 0, 512, nullptr, 512, nullptr, &lwork, info, 1 << 20) ==
        kSuccess);
  CHECK(lwork > 0);
  CHECK(cusolverDnDestroySyevjInfo(info) == kSuccess);
}

TEST_CASE("the side selects the size that counts") {
  Handle handle;
  int left = 0, right = 0;
  CHECK(cusolverDnCunmqr_bufferSize(handle.value, 0, 0, 10, 20, 5, nullptr, 10, nullptr, nullptr, 10, &left) ==
        kSuccess);
  CHECK(cusolverDnCunmqr_bufferSize(handle.value, 1, 0, 10, 20, 5, nullptr, 20, nullptr, nullptr, 10, &right) ==
        kSuccess);
  CHECK(left == 20 * 64);
  CHECK(right == 10 * 64);
}

TEST_CASE("the Jacobi methods accept their settings") {
  Handle handle;
  void* info = nullptr;
  REQUIRE(cusolverDnCreateGesvdjInfo(&info) == kSuccess);
  CHECK(cusolverDnXgesvdjSetTolerance(info, 1e-7) == kSuccess);
  CHECK(cusolverDnXgesvdjSetMaxSweeps(info, 15) == kSuccess);
  CHECK(cusolverDnXgesvdjSetSortEig(info, 1) == kSuccess);
  int lwork = 0;
  CHECK(cusolverDnZgesvdj_bufferSize(handle.value, 1, 1, 6, 4, nullptr, 6, nullptr, nullptr, 6, nullptr, 4, &lwork,
                                     info) == kSuccess);
  CHECK(lwork == 6 * 4 + 4 * 4 + 2 * 4);
  CHECK(cusolverDnZgesvdj_bufferSize(handle.value, 1, 1, 6, 4, nullptr, 6, nullptr, nullptr, 6, nullptr, 4, &lwork,
                                     nullptr) == kInvalidValue);
  CHECK(cusolverDnXgesvdjSetMaxSweeps(nullptr, 15) == kInvalidValue);
  CHECK(cusolverDnDestroyGesvdjInfo(info) == kSuccess);
}

TEST_CASE("an approximate decomposition returns a residual of zero to the host") {
  Handle handle;
  DeviceBuffer device(1 << 20);
  int lwork = 0;
  CHECK(cusolverDnSgesvdaStridedBatched_bufferSize(handle.value, 1, 2, 4, 2, nullptr, 4, 8, nullptr, 2, nullptr, 4, 8,
                                                   nullptr, 2, 4, &lwork, 3) == kSuccess);
  CHECK(lwork == (4 * 2 + 2 * 2 * 2) * 3);
  double residuals[] = {1, 1, 1, 1};
  CHECK(cusolverDnSgesvdaStridedBatched(handle.value, 1, 2, 4, 2, nullptr, 4, 8, nullptr, 2, nullptr, 4, 8, nullptr, 2,
                                        4, device.get<float>(), lwork, device.get<int>(), residuals, 3) == kSuccess);
  CHECK(residuals[2] == 0);
  CHECK(residuals[3] == 1);
  CHECK(cusolverDnSgesvdaStridedBatched(handle.value, 1, 2, 4, 2, nullptr, 4, 8, nullptr, 2, nullptr, 4, 8, nullptr, 2,
                                        4, device.get<float>(), lwork, device.get<int>(), nullptr, 3) == kSuccess);
}

TEST_CASE("the 64-bit interface returns bytes for the device and the host") {
  Handle handle;
  std::size_t device = 0, host = 7;
  CHECK(cusolverDnXgeqrf_bufferSize(handle.value, handle.params, 100, 10, 5, nullptr, 100, 5, nullptr, 5, &device,
                                    &host) == kSuccess);
  CHECK(device == 10 * 64 * 16);
  CHECK(host == 0);
  CHECK(cusolverDnXsyevBatched_bufferSize(handle.value, handle.params, 1, 0, 8, 0, nullptr, 8, 0, nullptr, 0, &device,
                                          &host, 4) == kSuccess);
  CHECK(device == (8 * 8 + 2 * 8) * 4 * 4);
  CHECK(cusolverDnXgeev_bufferSize(handle.value, handle.params, 0, 1, 8, 0, nullptr, 8, 4, nullptr, 0, nullptr, 1, 0,
                                   nullptr, 8, 0, &device, &host) == kSuccess);
  CHECK(device > 0);
  CHECK(host > 0);
  CHECK(cusolverDnXgeqrf_bufferSize(handle.value, handle.params, 100, 10, 99, nullptr, 100, 99, nullptr, 99, &device,
                                    &host) == kInvalidValue);
  std::uint64_t junk[8] = {};
  CHECK(cusolverDnXgeqrf_bufferSize(handle.value, junk, 100, 10, 0, nullptr, 100, 0, nullptr, 0, &device, &host) ==
        kInvalidValue);
  CHECK(cusolverDnXgeqrf_bufferSize(handle.value, nullptr, 100, 10, 0, nullptr, 100, 0, nullptr, 0, &device, &host) ==
        kSuccess);
  CHECK(device == 10 * 64 * 4);
}

TEST_CASE("an invalid handle is refused") {
  std::uint64_t junk[8] = {};
  int lwork = 0;
  CHECK(cusolverDnSgetrf_bufferSize(nullptr, 1, 1, nullptr, 1, &lwork) == kNotInitialized);
  CHECK(cusolverDnSgetrf(junk, 1, 1, nullptr, 1, nullptr, nullptr, nullptr) == kNotInitialized);
  CHECK(cusolverDnDestroy(junk) == kNotInitialized);
  CHECK(cusolverDnDestroyParams(junk) == kInvalidValue);
}
