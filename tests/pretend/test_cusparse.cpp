#include <doctest/doctest.h>

#include <cstdint>
#include <string>

#include "pretend/recorder.h"

using namespace plimsoll::pretend;

extern "C" {
int cusparseCreate(void**);
int cusparseDestroy(void*);
int cusparseSetStream(void*, void*);
int cusparseSetPointerMode(void*, int);
const char* cusparseGetErrorString(int);
int cusparseCreateCsr(void**, std::int64_t, std::int64_t, std::int64_t, void*, void*, void*, int, int, int, int);
int cusparseDestroySpMat(void*);
int cusparseCreateDnMat(void**, std::int64_t, std::int64_t, std::int64_t, void*, int, int);
int cusparseDestroyDnMat(void*);
int cusparseDnMatSetStridedBatch(void*, int, std::int64_t);
int cusparseDnMatGetStridedBatch(void*, int*, std::int64_t*);
int cusparseSpMatGetSize(void*, std::int64_t*, std::int64_t*, std::int64_t*);
int cusparseSpMatSetAttribute(void*, int, void*, std::size_t);
int cusparseSpMatGetAttribute(void*, int, void*, std::size_t);
int cusparseSpMM_bufferSize(void*, int, int, const void*, void*, void*, const void*, void*, int, int, std::size_t*);
int cusparseSpMM(void*, int, int, const void*, void*, void*, const void*, void*, int, int, void*);
int cusparseSpSM_createDescr(void**);
int cusparseSpSM_destroyDescr(void*);
int cusparseSpSM_bufferSize(void*, int, int, const void*, void*, void*, void*, int, int, void*, std::size_t*);
int cusparseSpGEMM_createDescr(void**);
int cusparseSpGEMM_destroyDescr(void*);
int cusparseSpGEMM_workEstimation(void*, int, int, const void*, void*, void*, const void*, void*, int, int, void*,
                                  std::size_t*, void*);
int cusparseSpGEMM_compute(void*, int, int, const void*, void*, void*, const void*, void*, int, int, void*,
                           std::size_t*, void*);
int cusparseCreateMatDescr(void**);
int cusparseDestroyMatDescr(void*);
int cusparseSetMatFillMode(void*, int);
int cusparseGetMatFillMode(const void*);
int cusparseCreateBsrsm2Info(void**);
int cusparseDestroyBsrsm2Info(void*);
int cusparseSbsrsm2_bufferSize(void*, int, int, int, int, int, int, const void*, float*, const int*, const int*, int,
                               void*, int*);
int cusparseXbsrsm2_zeroPivot(void*, void*, int*);
int cusparseXcsrgeam2Nnz(void*, int, int, const void*, int, const int*, const int*, const void*, int, const int*,
                         const int*, const void*, int*, int*, void*);
int cusparseXcoosort_bufferSizeExt(void*, int, int, int, const int*, const int*, std::size_t*);
int cusparseXcoo2csr(void*, const int*, int, int, int*, int);
}

namespace {

constexpr int kSuccess = 0;
constexpr int kNotInitialized = 1;
constexpr int kInvalidValue = 3;

struct Handle {
  Handle() { REQUIRE(cusparseCreate(&value) == kSuccess); }
  ~Handle() { cusparseDestroy(value); }
  void* value = nullptr;
};

struct Csr {
  Csr(std::int64_t rows, std::int64_t cols, std::int64_t nnz) {
    REQUIRE(cusparseCreateCsr(&value, rows, cols, nnz, nullptr, nullptr, nullptr, 2, 2, 0, 0) == kSuccess);
  }
  ~Csr() { cusparseDestroySpMat(value); }
  void* value = nullptr;
};

struct Dense {
  Dense(std::int64_t rows, std::int64_t cols) {
    REQUIRE(cusparseCreateDnMat(&value, rows, cols, rows, nullptr, 0, 1) == kSuccess);
  }
  ~Dense() { cusparseDestroyDnMat(value); }
  void* value = nullptr;
};

}  // namespace

TEST_CASE("descriptors return their values") {
  Csr matrix(3, 4, 5);
  std::int64_t rows = 0, cols = 0, nnz = 0;
  CHECK(cusparseSpMatGetSize(matrix.value, &rows, &cols, &nnz) == kSuccess);
  CHECK(rows == 3);
  CHECK(cols == 4);
  CHECK(nnz == 5);
  int upper = 1, kept = 0;
  CHECK(cusparseSpMatSetAttribute(matrix.value, 0, &upper, sizeof upper) == kSuccess);
  CHECK(cusparseSpMatGetAttribute(matrix.value, 0, &kept, sizeof kept) == kSuccess);
  CHECK(kept == 1);
  CHECK(cusparseSpMatSetAttribute(matrix.value, 9, &upper, sizeof upper) == kInvalidValue);
  Dense dense(2, 2);
  CHECK(cusparseDnMatSetStridedBatch(dense.value, 6, 4) == kSuccess);
  std::int64_t stride = 0;
  CHECK(cusparseDnMatGetStridedBatch(dense.value, &kept, &stride) == kSuccess);
  CHECK(kept == 6);
  CHECK(stride == 4);
  CHECK(cusparseSpMatGetSize(dense.value, &rows, &cols, &nnz) == kInvalidValue);
  void* properties = nullptr;
  REQUIRE(cusparseCreateMatDescr(&properties) == kSuccess);
  CHECK(cusparseSetMatFillMode(properties, 1) == kSuccess);
  CHECK(cusparseGetMatFillMode(properties) == 1);
  CHECK(cusparseSetMatFillMode(properties, 2) == kInvalidValue);
  CHECK(cusparseDestroyMatDescr(properties) == kSuccess);
}

TEST_CASE("a product returns its buffer size and runs on the handle's stream") {
  Handle handle;
  Csr a(100, 50, 400);
  Dense b(50, 8), c(100, 8);
  Stream* stream = machine().create_stream(0, 0, 0);
  REQUIRE(cusparseSetStream(handle.value, stream) == kSuccess);
  std::size_t bytes = 0;
  const float one = 1;
  CHECK(cusparseSpMM_bufferSize(handle.value, 0, 0, &one, a.value, b.value, &one, c.value, 0, 0, &bytes) == kSuccess);
  CHECK(bytes > 0);
  CHECK(bytes % 256 == 0);
  Recorder recorder;
  CHECK(cusparseSpMM(handle.value, 0, 0, &one, a.value, b.value, &one, c.value, 0, 0, nullptr) == kSuccess);
  const auto entries = recorder.take();
  REQUIRE(entries.size() == 1);
  CHECK(entries[0].name == "cusparseSpMM");
  CHECK(entries[0].event.stream == stream->id);
  CHECK(cusparseSpMM_bufferSize(handle.value, 0, 0, &one, b.value, b.value, &one, c.value, 0, 0, &bytes) ==
        kInvalidValue);
  CHECK(cusparseSpMM(nullptr, 0, 0, &one, a.value, b.value, &one, c.value, 0, 0, nullptr) == kNotInitialized);
  cusparseSetStream(handle.value, nullptr);
  machine().destroy_stream(stream);
}

TEST_CASE("a triangular solve keeps a copy of its right-hand sides") {
  Handle handle;
  Csr a(1000, 1000, 5000);
  Dense narrow(1000, 1), wide(1000, 64);
  void* info = nullptr;
  REQUIRE(cusparseSpSM_createDescr(&info) == kSuccess);
  std::size_t one = 0, many = 0;
  const float alpha = 1;
  CHECK(cusparseSpSM_bufferSize(handle.value, 0, 0, &alpha, a.value, narrow.value, narrow.value, 0, 0, info, &one) ==
        kSuccess);
  CHECK(cusparseSpSM_bufferSize(handle.value, 0, 0, &alpha, a.value, wide.value, wide.value, 0, 0, info, &many) ==
        kSuccess);
  CHECK(many - one == 256000 - 4096);  // Both rounded to 256.
  CHECK(cusparseSpSM_destroyDescr(info) == kSuccess);
}

TEST_CASE("a sparse-sparse product queries its sizes in two rounds, and its number of entries is a read-back") {
  Handle handle;
  Csr a(10, 10, 20), b(10, 10, 20), c(10, 10, 0);
  void* info = nullptr;
  REQUIRE(cusparseSpGEMM_createDescr(&info) == kSuccess);
  const float one = 1;
  std::size_t first = 0, second = 0;
  DeviceBuffer buffer(1 << 20);
  Recorder recorder;
  const auto before = control::work().read_backs;
  CHECK(cusparseSpGEMM_workEstimation(handle.value, 0, 0, &one, a.value, b.value, &one, c.value, 0, 0, info, &first,
                                      nullptr) == kSuccess);
  CHECK(first > 0);
  CHECK(recorder.take().empty());
  CHECK(cusparseSpGEMM_workEstimation(handle.value, 0, 0, &one, a.value, b.value, &one, c.value, 0, 0, info, &first,
                                      buffer.get()) == kSuccess);
  CHECK(cusparseSpGEMM_compute(handle.value, 0, 0, &one, a.value, b.value, &one, c.value, 0, 0, info, &second,
                               nullptr) == kSuccess);
  CHECK(second > 0);
  CHECK(control::work().read_backs == before);
  CHECK(cusparseSpGEMM_compute(handle.value, 0, 0, &one, a.value, b.value, &one, c.value, 0, 0, info, &second,
                               buffer.get()) == kSuccess);
  CHECK(control::work().read_backs == before + 1);
  std::int64_t rows = 0, cols = 0, nnz = -1;
  CHECK(cusparseSpMatGetSize(c.value, &rows, &cols, &nnz) == kSuccess);
  CHECK(nnz == 0);
  CHECK(cusparseSpGEMM_destroyDescr(info) == kSuccess);
}

TEST_CASE("the number of entries of a sum is a read-back on the host and not touched on the device") {
  Handle handle;
  DeviceBuffer device(1 << 20);
  int entries = 7;
  const auto before = control::work().read_backs;
  CHECK(cusparseXcsrgeam2Nnz(handle.value, 3, 3, nullptr, 2, nullptr, nullptr, nullptr, 2, nullptr, nullptr, nullptr,
                             device.get<int>(), &entries, nullptr) == kSuccess);
  CHECK(entries == 0);
  CHECK(control::work().read_backs == before + 1);
  CHECK(cusparseXcsrgeam2Nnz(handle.value, 3, 3, nullptr, 2, nullptr, nullptr, nullptr, 2, nullptr, nullptr, nullptr,
                             device.get<int>(), device.get<int>(), nullptr) == kSuccess);
  CHECK(control::work().read_backs == before + 1);
}

TEST_CASE("a block solve has a buffer and no zero pivot") {
  Handle handle;
  void* info = nullptr;
  REQUIRE(cusparseCreateBsrsm2Info(&info) == kSuccess);
  int bytes = 0, position = 5;
  CHECK(cusparseSbsrsm2_bufferSize(handle.value, 0, 0, 0, 16, 4, 32, nullptr, nullptr, nullptr, nullptr, 2, info,
                                   &bytes) == kSuccess);
  CHECK(bytes >= 16 * 2 * 4 * 4);
  CHECK(cusparseSbsrsm2_bufferSize(handle.value, 0, 0, 0, 1 << 20, 1 << 10, 32, nullptr, nullptr, nullptr, nullptr, 64,
                                   info, &bytes) == kSuccess);
  CHECK(bytes > 0);
  CHECK(cusparseXbsrsm2_zeroPivot(handle.value, info, &position) == kSuccess);
  CHECK(position == -1);
  CHECK(cusparseDestroyBsrsm2Info(info) == kSuccess);
}

TEST_CASE("sorting needs memory for its keys") {
  Handle handle;
  std::size_t bytes = 0;
  CHECK(cusparseXcoosort_bufferSizeExt(handle.value, 100, 100, 1000, nullptr, nullptr, &bytes) == kSuccess);
  CHECK(bytes >= 2 * 4 * 1000);
  CHECK(cusparseXcoo2csr(handle.value, nullptr, 1000, 100, nullptr, 0) == kSuccess);
}

TEST_CASE("errors have names") {
  CHECK(std::string(cusparseGetErrorString(kInvalidValue)) == "CUSPARSE_STATUS_INVALID_VALUE");
  CHECK(std::string(cusparseGetErrorString(10)) == "CUSPARSE_STATUS_NOT_SUPPORTED");
}
