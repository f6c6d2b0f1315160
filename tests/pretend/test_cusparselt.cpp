#include <doctest/doctest.h>

#include <cstdint>

#include "pretend/recorder.h"

using namespace plimsoll::pretend;

/// The caller's memory in cuSPARSELt 0.10, the smallest of all versions.
struct alignas(16) Opaque {
  std::uint8_t data[512];
};

extern "C" {
int cusparseLtInit(Opaque*);
int cusparseLtDestroy(const Opaque*);
int cusparseLtDenseDescriptorInit(const Opaque*, Opaque*, std::int64_t, std::int64_t, std::int64_t, std::uint32_t, int,
                                  int);
int cusparseLtStructuredDescriptorInit(const Opaque*, Opaque*, std::int64_t, std::int64_t, std::int64_t, std::uint32_t,
                                       int, int, int);
int cusparseLtMatDescriptorDestroy(const Opaque*);
int cusparseLtMatmulDescriptorInit(const Opaque*, Opaque*, int, int, const Opaque*, const Opaque*, const Opaque*,
                                   const Opaque*, int);
int cusparseLtMatmulDescSetAttribute(const Opaque*, Opaque*, int, const void*, std::size_t);
int cusparseLtMatmulDescGetAttribute(const Opaque*, const Opaque*, int, void*, std::size_t);
int cusparseLtMatmulAlgSelectionInit(const Opaque*, Opaque*, const Opaque*, int);
int cusparseLtMatmulAlgSetAttribute(const Opaque*, Opaque*, int, const void*, std::size_t);
int cusparseLtMatmulAlgGetAttribute(const Opaque*, const Opaque*, int, void*, std::size_t);
int cusparseLtMatmulPlanInit(const Opaque*, Opaque*, const Opaque*, const Opaque*);
int cusparseLtMatmulPlanDestroy(const Opaque*);
int cusparseLtMatmulGetWorkspace(const Opaque*, const Opaque*, std::size_t*);
int cusparseLtMatmul(const Opaque*, const Opaque*, const void*, const void*, const void*, const void*, const void*,
                     void*, void*, void**, std::int32_t);
int cusparseLtMatmulSearch(const Opaque*, Opaque*, const void*, const void*, const void*, const void*, const void*,
                           void*, void*, void**, std::int32_t);
int cusparseLtSpMMACompressedSize2(const Opaque*, const Opaque*, std::size_t*, std::size_t*);
int cusparseLtSpMMACompress2(const Opaque*, const Opaque*, int, int, const void*, void*, void*, void*);
}

namespace {

constexpr int kSuccess = 0;
constexpr int kNotInitialized = 1;
constexpr int kInvalidValue = 3;
constexpr int kR8I = 3;
constexpr int kR16BF = 14;
constexpr int kRowOrder = 2;

struct Handle {
  Handle() { REQUIRE(cusparseLtInit(&value) == kSuccess); }
  ~Handle() { cusparseLtDestroy(&value); }
  Opaque value{};
};

}  // namespace

TEST_CASE("compression keeps 9/16 of the bytes of 16-bit values and 10/16 of 8-bit values") {
  Handle handle;
  Opaque matrix{};
  std::size_t compressed = 0, buffer = 0;
  REQUIRE(cusparseLtStructuredDescriptorInit(&handle.value, &matrix, 128, 256, 256, 16, kR16BF, kRowOrder, 0) ==
          kSuccess);
  CHECK(cusparseLtSpMMACompressedSize2(&handle.value, &matrix, &compressed, &buffer) == kSuccess);
  CHECK(compressed == 128 * 256 * 2 * 9 / 16);
  CHECK(buffer == 128 * 256 * 2 / 16);
  REQUIRE(cusparseLtStructuredDescriptorInit(&handle.value, &matrix, 128, 256, 256, 16, kR8I, kRowOrder, 0) ==
          kSuccess);
  CHECK(cusparseLtSpMMACompressedSize2(&handle.value, &matrix, &compressed, &buffer) == kSuccess);
  CHECK(compressed == 128 * 256 * 10 / 16);
  CHECK(cusparseLtSpMMACompress2(&handle.value, &matrix, 1, 0, nullptr, nullptr, nullptr, nullptr) == kSuccess);
  CHECK(cusparseLtMatDescriptorDestroy(&matrix) == kSuccess);
  CHECK(cusparseLtSpMMACompressedSize2(&handle.value, &matrix, &compressed, &buffer) == kInvalidValue);
}

TEST_CASE("a product is planned, searched and run, with its sizes") {
  Handle handle;
  Opaque a{}, b{}, d{}, matmul{}, selection{}, plan{};
  REQUIRE(cusparseLtStructuredDescriptorInit(&handle.value, &a, 64, 128, 128, 16, kR16BF, kRowOrder, 0) == kSuccess);
  REQUIRE(cusparseLtDenseDescriptorInit(&handle.value, &b, 128, 32, 32, 16, kR16BF, kRowOrder) == kSuccess);
  REQUIRE(cusparseLtDenseDescriptorInit(&handle.value, &d, 64, 32, 32, 16, kR16BF, kRowOrder) == kSuccess);
  REQUIRE(cusparseLtMatmulDescriptorInit(&handle.value, &matmul, 0, 0, &a, &b, &d, &d, 2) == kSuccess);
  void* bias = &plan;
  void* kept = nullptr;
  CHECK(cusparseLtMatmulDescSetAttribute(&handle.value, &matmul, 8, &bias, sizeof bias) == kSuccess);
  CHECK(cusparseLtMatmulDescGetAttribute(&handle.value, &matmul, 8, &kept, sizeof kept) == kSuccess);
  CHECK(kept == bias);
  REQUIRE(cusparseLtMatmulAlgSelectionInit(&handle.value, &selection, &matmul, 0) == kSuccess);
  int id = 3;
  CHECK(cusparseLtMatmulAlgSetAttribute(&handle.value, &selection, 0, &id, sizeof id) == kSuccess);
  REQUIRE(cusparseLtMatmulPlanInit(&handle.value, &plan, &matmul, &selection) == kSuccess);
  std::size_t workspace = 1;
  CHECK(cusparseLtMatmulGetWorkspace(&handle.value, &plan, &workspace) == kSuccess);
  CHECK(workspace == 0);
  Stream* stream = machine().create_stream(0, 0, 0);
  void* streams[] = {stream};
  Recorder recorder;
  CHECK(cusparseLtMatmul(&handle.value, &plan, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, streams,
                         1) == kSuccess);
  const auto entries = recorder.take();
  REQUIRE(entries.size() == 1);
  CHECK(entries[0].event.kind == Happening::kGemm);
  CHECK(entries[0].event.stream == stream->id);
  CHECK(entries[0].event.m == 64);
  CHECK(entries[0].event.n == 32);
  CHECK(entries[0].event.k == 128);
  CHECK(cusparseLtMatmulSearch(&handle.value, &plan, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
                               streams, 1) == kSuccess);
  CHECK(cusparseLtMatmulAlgGetAttribute(&handle.value, &selection, 0, &id, sizeof id) == kSuccess);
  CHECK(id == 0);
  CHECK(cusparseLtMatmulPlanDestroy(&plan) == kSuccess);
  CHECK(cusparseLtMatmulPlanDestroy(&plan) == kInvalidValue);
  machine().destroy_stream(stream);
}

TEST_CASE("calls without a handle or with wrong memory are refused") {
  Opaque nothing{}, matrix{};
  CHECK(cusparseLtDenseDescriptorInit(&nothing, &matrix, 8, 8, 8, 16, kR16BF, kRowOrder) == kNotInitialized);
  Handle handle;
  CHECK(cusparseLtDenseDescriptorInit(&handle.value, &matrix, 0, 8, 8, 16, kR16BF, kRowOrder) == kInvalidValue);
  CHECK(cusparseLtMatmulDescriptorInit(&handle.value, &matrix, 0, 0, &nothing, &nothing, &nothing, &nothing, 2) ==
        kInvalidValue);
}
