// Stream-ordered allocation: the cards' own pools and the program's pools.

#include "plimsoll/pretend/model/memory/memory_pool.h"
#include "pretend/cuda_program/program.h"

namespace test_pools {

using namespace program;
using plimsoll::pretend::MemoryPool;

namespace {

/// A pool that the program makes.
class OwnPool {
 public:
  explicit OwnPool(int device) {
    cudaMemPoolProps properties{};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location.type = cudaMemLocationTypeDevice;
    properties.location.id = device;
    REQUIRE(cudaMemPoolCreate(&pool_, &properties) == cudaSuccess);
  }
  ~OwnPool() { CHECK(cudaMemPoolDestroy(pool_) == cudaSuccess); }
  OwnPool(const OwnPool&) = delete;
  OwnPool& operator=(const OwnPool&) = delete;
  operator cudaMemPool_t() const { return pool_; }

 private:
  cudaMemPool_t pool_ = nullptr;
};

void* take(cudaMemPool_t pool, plimsoll::Bytes bytes) {
  void* pointer = nullptr;
  REQUIRE(cudaMallocFromPoolAsync(&pointer, bytes, pool, nullptr) == cudaSuccess);
  return pointer;
}

std::uint64_t value_of(cudaMemPool_t pool, cudaMemPoolAttr attribute) {
  std::uint64_t value = 0;
  CHECK(cudaMemPoolGetAttribute(pool, attribute, &value) == cudaSuccess);
  return value;
}

cudaError_t set(cudaMemPool_t pool, cudaMemPoolAttr attribute, std::uint64_t value) {
  return cudaMemPoolSetAttribute(pool, attribute, &value);
}

}  // namespace

TEST_CASE("a pool takes whole chunks of its card, for any current card, and frees them on a trim") {
  const auto of_current = control::memory(0).used;
  const OwnPool pool(1);
  const auto before = control::memory(1).used;
  void* pointer = take(pool, 1_MiB);
  CHECK(control::memory(1).used == before + MemoryPool::kChunk);
  CHECK(control::memory(0).used == of_current);
  cudaPointerAttributes attributes{};
  CHECK(cudaPointerGetAttributes(&attributes, pointer) == cudaSuccess);
  CHECK(attributes.device == 1);
  CHECK(value_of(pool, cudaMemPoolAttrUsedMemCurrent) == 1_MiB);
  CHECK(value_of(pool, cudaMemPoolAttrReservedMemCurrent) == MemoryPool::kChunk);
  REQUIRE(cudaFreeAsync(pointer, nullptr) == cudaSuccess);
  CHECK(control::memory(1).used == before + MemoryPool::kChunk);
  REQUIRE(cudaMemPoolTrimTo(pool, 0) == cudaSuccess);
  CHECK(control::memory(1).used == before);
}

TEST_CASE("when the host waits, a pool keeps the bytes of its threshold, by default none") {
  const OwnPool pool(0);
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);  // Empties the other pools.
  const auto before = control::memory(0).used;
  REQUIRE(set(pool, cudaMemPoolAttrReleaseThreshold, ~std::uint64_t{0}) == cudaSuccess);
  CHECK(value_of(pool, cudaMemPoolAttrReleaseThreshold) == ~std::uint64_t{0});
  cudaFreeAsync(take(pool, 1_MiB), nullptr);
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  CHECK(control::memory(0).used == before + MemoryPool::kChunk);
  REQUIRE(set(pool, cudaMemPoolAttrReleaseThreshold, 0) == cudaSuccess);
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  CHECK(control::memory(0).used == before);
}

TEST_CASE("a pool keeps its peaks until they are reset") {
  const OwnPool pool(0);
  cudaFreeAsync(take(pool, 40_MiB), nullptr);
  cudaMemPoolTrimTo(pool, 0);
  CHECK(value_of(pool, cudaMemPoolAttrUsedMemHigh) == 40_MiB);
  CHECK(value_of(pool, cudaMemPoolAttrReservedMemHigh) == 2 * MemoryPool::kChunk);
  REQUIRE(set(pool, cudaMemPoolAttrUsedMemHigh, 0) == cudaSuccess);
  REQUIRE(set(pool, cudaMemPoolAttrReservedMemHigh, 0) == cudaSuccess);
  CHECK(value_of(pool, cudaMemPoolAttrUsedMemHigh) == 0);
  CHECK(value_of(pool, cudaMemPoolAttrReservedMemHigh) == 0);
}

TEST_CASE("a card's own pool serves cudaMallocAsync and cannot be destroyed") {
  cudaMemPool_t own = nullptr;
  cudaMemPool_t current = nullptr;
  REQUIRE(cudaDeviceGetDefaultMemPool(&own, 0) == cudaSuccess);
  REQUIRE(cudaDeviceGetMemPool(&current, 0) == cudaSuccess);
  CHECK(own == current);
  const auto before = value_of(own, cudaMemPoolAttrUsedMemCurrent);
  void* pointer = nullptr;
  REQUIRE(cudaMallocAsync(&pointer, 512, nullptr) == cudaSuccess);
  CHECK(value_of(own, cudaMemPoolAttrUsedMemCurrent) == before + 512);
  REQUIRE(cudaFreeAsync(pointer, nullptr) == cudaSuccess);
  CHECK(value_of(own, cudaMemPoolAttrUsedMemCurrent) == before);
  CHECK(fails_with(cudaErrorInvalidValue, cudaMemPoolDestroy(own)));
  CHECK(fails_with(cudaErrorInvalidDevice, cudaDeviceGetDefaultMemPool(&own, control::device_count())));
}

TEST_CASE("a request above a pool's limit fails and takes nothing from the card") {
  const OwnPool pool(0);
  const auto before = control::memory(0);
  void* pointer = &pointer;
  CHECK(fails_with(cudaErrorMemoryAllocation, cudaMallocFromPoolAsync(&pointer, before.capacity, pool, nullptr)));
  CHECK(pointer == nullptr);
  CHECK(control::memory(0).used == before.used);
}

TEST_CASE("every call refuses an invalid or destroyed pool") {
  cudaMemPoolProps properties{};
  properties.location.id = control::device_count();
  cudaMemPool_t destroyed = nullptr;
  CHECK(fails_with(cudaErrorInvalidValue, cudaMemPoolCreate(&destroyed, &properties)));
  CHECK(fails_with(cudaErrorInvalidValue, cudaMemPoolCreate(&destroyed, nullptr)));
  properties.location.id = 0;
  REQUIRE(cudaMemPoolCreate(&destroyed, &properties) == cudaSuccess);
  void* pointer = take(destroyed, 1_MiB);
  REQUIRE(cudaMemPoolDestroy(destroyed) == cudaSuccess);
  void* refused = nullptr;
  std::uint64_t value = 0;
  CHECK(fails_with(cudaErrorInvalidValue, cudaMallocFromPoolAsync(&refused, 1, destroyed, nullptr)));
  CHECK(fails_with(cudaErrorInvalidValue, cudaMemPoolGetAttribute(destroyed, cudaMemPoolAttrUsedMemCurrent, &value)));
  CHECK(fails_with(cudaErrorInvalidValue, set(destroyed, cudaMemPoolAttrReleaseThreshold, 0)));
  CHECK(fails_with(cudaErrorInvalidValue, cudaMemPoolSetAccess(destroyed, nullptr, 0)));
  CHECK(fails_with(cudaErrorInvalidValue, cudaMemPoolTrimTo(destroyed, 0)));
  CHECK(fails_with(cudaErrorInvalidValue, cudaMemPoolDestroy(destroyed)));
  CHECK(cudaFreeAsync(pointer, nullptr) == cudaSuccess);
}

TEST_CASE("a pool's reuse can be read but not disabled; other attributes are read-only") {
  const OwnPool pool(0);
  for (const auto attribute : {cudaMemPoolReuseFollowEventDependencies, cudaMemPoolReuseAllowOpportunistic,
                               cudaMemPoolReuseAllowInternalDependencies}) {
    int value = 0;
    CHECK(cudaMemPoolGetAttribute(pool, attribute, &value) == cudaSuccess);
    CHECK(value == 1);
    CHECK(cudaMemPoolSetAttribute(pool, attribute, &value) == cudaSuccess);
    value = 0;
    CHECK(fails_with(cudaErrorNotSupported, cudaMemPoolSetAttribute(pool, attribute, &value)));
  }
  CHECK(failed_by_name("cudaMemPoolSetAttribute against reuse"));
  CHECK(fails_with(cudaErrorInvalidValue, set(pool, cudaMemPoolAttrUsedMemCurrent, 0)));
  CHECK(fails_with(cudaErrorInvalidValue, set(pool, cudaMemPoolAttrUsedMemHigh, 1)));
  CHECK(fails_with(cudaErrorNotSupported, set(pool, static_cast<cudaMemPoolAttr>(999), 0)));
}

TEST_CASE("a pool can be opened to existing cards") {
  const OwnPool pool(0);
  cudaMemAccessDesc access{};
  access.location.type = cudaMemLocationTypeDevice;
  access.location.id = 1;
  CHECK(cudaMemPoolSetAccess(pool, &access, 1) == cudaSuccess);
  access.location.id = control::device_count();
  CHECK(fails_with(cudaErrorInvalidDevice, cudaMemPoolSetAccess(pool, &access, 1)));
}

}  // namespace test_pools
