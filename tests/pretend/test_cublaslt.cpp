#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>

#include "plimsoll/pretend/cublaslt/abi.h"
#include "plimsoll/pretend/cuda/library_types.h"
#include "pretend/recorder.h"

using namespace plimsoll::pretend;
using cublaslt::HeuristicResult;

extern "C" {
int cublasLtCreate(void**);
int cublasLtDestroy(void*);
std::size_t cublasLtGetVersion();
int cublasLtMatrixLayoutCreate(void**, int, std::uint64_t, std::uint64_t, std::int64_t);
int cublasLtMatrixLayoutDestroy(void*);
int cublasLtMatrixLayoutSetAttribute(void*, int, const void*, std::size_t);
int cublasLtMatrixLayoutGetAttribute(void*, int, void*, std::size_t, std::size_t*);
int cublasLtMatmulDescCreate(void**, int, int);
int cublasLtMatmulDescDestroy(void*);
int cublasLtMatmulDescSetAttribute(void*, int, const void*, std::size_t);
int cublasLtMatmulDescGetAttribute(void*, int, void*, std::size_t, std::size_t*);
int cublasLtMatmulPreferenceCreate(void**);
int cublasLtMatmulPreferenceDestroy(void*);
int cublasLtMatmulPreferenceSetAttribute(void*, int, const void*, std::size_t);
int cublasLtMatmulAlgoGetHeuristic(void*, void*, void*, void*, void*, void*, void*, int, HeuristicResult*, int*);
int cublasLtMatmul(void*, void*, const void*, const void*, void*, const void*, void*, const void*, const void*, void*,
                   void*, void*, const void*, void*, std::size_t, void*);
}

namespace {

constexpr int kSuccess = 0;
constexpr int kNotInitialized = 1;
constexpr int kInvalidValue = 7;

/// A product of op(A), m×k, and B, k×n, `batch` times, with torch's descriptors.
struct Product {
  Product(int m, int n, int k, bool transpose_a, std::int32_t batch) {
    REQUIRE(cublasLtCreate(&handle) == kSuccess);
    REQUIRE(cublasLtMatmulDescCreate(&matmul, 68, kR32F) == kSuccess);
    const std::int32_t operation = transpose_a ? 1 : 0;
    REQUIRE(cublasLtMatmulDescSetAttribute(matmul, 3, &operation, sizeof operation) == kSuccess);
    const auto rows = static_cast<std::uint64_t>(transpose_a ? k : m);
    const auto cols = static_cast<std::uint64_t>(transpose_a ? m : k);
    REQUIRE(cublasLtMatrixLayoutCreate(&a, kR16BF, rows, cols, static_cast<std::int64_t>(rows)) == kSuccess);
    REQUIRE(cublasLtMatrixLayoutCreate(&b, kR16BF, static_cast<std::uint64_t>(k), static_cast<std::uint64_t>(n), k) ==
            kSuccess);
    REQUIRE(cublasLtMatrixLayoutCreate(&c, kR16BF, static_cast<std::uint64_t>(m), static_cast<std::uint64_t>(n), m) ==
            kSuccess);
    for (void* layout : {a, b, c}) {
      REQUIRE(cublasLtMatrixLayoutSetAttribute(layout, 5, &batch, sizeof batch) == kSuccess);
    }
    REQUIRE(cublasLtMatmulPreferenceCreate(&preference) == kSuccess);
  }
  ~Product() {
    cublasLtMatmulPreferenceDestroy(preference);
    for (void* layout : {a, b, c}) cublasLtMatrixLayoutDestroy(layout);
    cublasLtMatmulDescDestroy(matmul);
    cublasLtDestroy(handle);
  }

  int run(void* stream = nullptr) const {
    const float one = 1;
    return cublasLtMatmul(handle, matmul, &one, nullptr, a, nullptr, b, &one, nullptr, c, nullptr, c, nullptr, nullptr,
                          0, stream);
  }

  void* handle = nullptr;
  void* matmul = nullptr;
  void* a = nullptr;
  void* b = nullptr;
  void* c = nullptr;
  void* preference = nullptr;
};

}  // namespace

TEST_CASE("a product reports the sizes that its layouts describe") {
  Recorder recorder;
  CHECK(Product(2, 3, 4, false, 1).run() == kSuccess);
  CHECK(Product(5, 6, 7, true, 8).run() == kSuccess);
  const auto entries = recorder.take();
  REQUIRE(entries.size() == 2);
  CHECK(entries[0].name == "cublasLtMatmul");
  CHECK(entries[0].event.kind == Happening::kGemm);
  CHECK(entries[0].event.m == 2);
  CHECK(entries[0].event.n == 3);
  CHECK(entries[0].event.k == 4);
  CHECK(entries[0].event.batch == 1);
  CHECK(entries[1].event.m == 5);
  CHECK(entries[1].event.n == 6);
  CHECK(entries[1].event.k == 7);
  CHECK(entries[1].event.batch == 8);
}

TEST_CASE("the heuristic returns one algorithm without workspace and writes nothing else") {
  Product product(8, 8, 8, false, 1);
  HeuristicResult results[2];
  std::memset(results, 0x5a, sizeof results);
  const HeuristicResult untouched = results[1];
  int returned = 0;
  CHECK(cublasLtMatmulAlgoGetHeuristic(product.handle, product.matmul, product.a, product.b, product.c, product.c,
                                       product.preference, 2, results, &returned) == kSuccess);
  CHECK(returned == 1);
  CHECK(results[0].state == kSuccess);
  CHECK(results[0].workspace_size == 0);
  CHECK(std::memcmp(&results[1], &untouched, sizeof untouched) == 0);
  CHECK(cublasLtMatmulAlgoGetHeuristic(product.handle, product.matmul, product.a, product.b, product.c, product.c,
                                       product.preference, 0, results, &returned) == kInvalidValue);
}

TEST_CASE("attributes are returned in the size in which they were set") {
  Product product(2, 3, 4, false, 1);
  const std::uint64_t most = 32 << 20;
  CHECK(cublasLtMatmulPreferenceSetAttribute(product.preference, 1, &most, sizeof most) == kSuccess);
  const void* bias = &most;
  CHECK(cublasLtMatmulDescSetAttribute(product.matmul, 8, &bias, sizeof bias) == kSuccess);
  const void* kept = nullptr;
  std::size_t written = 0;
  CHECK(cublasLtMatmulDescGetAttribute(product.matmul, 8, &kept, sizeof kept, &written) == kSuccess);
  CHECK(kept == bias);
  CHECK(written == sizeof bias);
  std::uint64_t rows = 0;
  CHECK(cublasLtMatrixLayoutGetAttribute(product.a, 2, &rows, sizeof rows, nullptr) == kSuccess);
  CHECK(rows == 2);
  CHECK(cublasLtMatrixLayoutGetAttribute(product.a, 2, nullptr, 0, &written) == kSuccess);
  CHECK(written == 8);
  std::uint32_t narrow = 0;
  CHECK(cublasLtMatrixLayoutGetAttribute(product.a, 2, &narrow, sizeof narrow, nullptr) == kInvalidValue);
  CHECK(cublasLtMatrixLayoutSetAttribute(product.a, 2, &narrow, sizeof narrow) == kInvalidValue);
  CHECK(cublasLtMatmulDescGetAttribute(product.matmul, 17, &kept, sizeof kept, nullptr) == kInvalidValue);
}

TEST_CASE("the kinds of descriptors are not confused") {
  Product product(2, 3, 4, false, 1);
  const float one = 1;
  CHECK(cublasLtMatmul(product.handle, product.a, &one, nullptr, product.a, nullptr, product.b, &one, nullptr,
                       product.c, nullptr, product.c, nullptr, nullptr, 0, nullptr) == kInvalidValue);
  CHECK(cublasLtMatmul(nullptr, product.matmul, &one, nullptr, product.a, nullptr, product.b, &one, nullptr, product.c,
                       nullptr, product.c, nullptr, nullptr, 0, nullptr) == kNotInitialized);
  CHECK(cublasLtMatrixLayoutDestroy(product.matmul) == kInvalidValue);
  CHECK(cublasLtMatmulDescDestroy(nullptr) == kSuccess);
}

TEST_CASE("the version is that of the toolkit") { CHECK(cublasLtGetVersion() / 10000 == PLIMSOLL_CUDA_MAJOR); }
