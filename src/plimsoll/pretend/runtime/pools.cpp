// Stream-ordered allocation: cudaMallocAsync and memory pools.

#include <utility>

#include "plimsoll/pretend/runtime/status.h"

using namespace plimsoll::pretend;
using namespace plimsoll::pretend::runtime;

namespace {

MemoryPool* pool_of(cudaMemPool_t handle) {
  auto* pool = reinterpret_cast<MemoryPool*>(handle);
  for (int index = 0; index < machine().device_count(); ++index) {
    Device& device = machine().device(index);
    if (pool == &device.default_pool || device.made_pools.contains(pool)) return pool;
  }
  return nullptr;
}

cudaMemPool_t handle_of(MemoryPool& pool) { return reinterpret_cast<cudaMemPool_t>(&pool); }

cudaError_t allocate(void** pointer, size_t bytes, MemoryPool& pool) {
  *pointer = nullptr;
  if (bytes == 0) return cudaSuccess;
  Device& device = machine().device(pool.device());
  const auto address = &pool == &device.default_pool ? pool.allocate(bytes) : device.made_pools.allocate(pool, bytes);
  if (!address) return status(cudaErrorMemoryAllocation);
  *pointer = reinterpret_cast<void*>(*address);
  return cudaSuccess;
}

}  // namespace

PLIMSOLL_API cudaError_t cudaMallocAsync(void** pointer, size_t bytes, cudaStream_t) {
  return allocate(pointer, bytes, ensure_context().default_pool);
}

PLIMSOLL_API cudaError_t cudaMallocFromPoolAsync(void** pointer, size_t bytes, cudaMemPool_t handle, cudaStream_t) {
  MemoryPool* pool = pool_of(handle);
  return pool != nullptr ? allocate(pointer, bytes, *pool) : status(cudaErrorInvalidValue);
}

PLIMSOLL_API cudaError_t cudaFreeAsync(void* pointer, cudaStream_t) { return cudaFree(pointer); }

PLIMSOLL_API cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  if (!has_device(device)) return status(cudaErrorInvalidDevice);
  *pool = handle_of(machine().device(device).default_pool);
  return cudaSuccess;
}
PLIMSOLL_ALIAS(cudaDeviceGetMemPool, cudaDeviceGetDefaultMemPool);

PLIMSOLL_API cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* properties) {
  if (properties == nullptr || !has_device(properties->location.id)) return status(cudaErrorInvalidValue);
  Device& device = machine().device(properties->location.id);
  *pool = handle_of(*device.made_pools.create(device.index, device.memory));
  return cudaSuccess;
}

PLIMSOLL_API cudaError_t cudaMemPoolDestroy(cudaMemPool_t handle) {
  MemoryPool* pool = pool_of(handle);
  const bool destroyed = pool != nullptr && machine().device(pool->device()).made_pools.destroy(pool);
  return status(destroyed ? cudaSuccess : cudaErrorInvalidValue);
}

PLIMSOLL_API cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t handle, cudaMemPoolAttr attribute, void* value) {
  MemoryPool* pool = pool_of(handle);
  if (pool == nullptr) return status(cudaErrorInvalidValue);
  using Counters = MemoryPool::Counters;
  static constexpr std::pair<cudaMemPoolAttr, plimsoll::Bytes Counters::*> kCounters[] = {
      {cudaMemPoolAttrReleaseThreshold, &Counters::threshold},
      {cudaMemPoolAttrReservedMemCurrent, &Counters::reserved},
      {cudaMemPoolAttrReservedMemHigh, &Counters::reserved_high},
      {cudaMemPoolAttrUsedMemCurrent, &Counters::used},
      {cudaMemPoolAttrUsedMemHigh, &Counters::used_high},
  };
  for (const auto& [known, counter] : kCounters) {
    if (attribute != known) continue;
    *static_cast<std::uint64_t*>(value) = pool->counters().*counter;
    return cudaSuccess;
  }
  switch (attribute) {
    case cudaMemPoolReuseFollowEventDependencies:
    case cudaMemPoolReuseAllowOpportunistic:
    case cudaMemPoolReuseAllowInternalDependencies:
      *static_cast<int*>(value) = 1;
      return cudaSuccess;
    default:
      return refused("cudaMemPoolGetAttribute with this attribute");
  }
}

PLIMSOLL_API cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t handle, cudaMemPoolAttr attribute, void* value) {
  MemoryPool* pool = pool_of(handle);
  if (pool == nullptr || value == nullptr) return status(cudaErrorInvalidValue);
  switch (attribute) {
    case cudaMemPoolAttrReleaseThreshold:
      pool->set_threshold(*static_cast<std::uint64_t*>(value));
      return cudaSuccess;
    case cudaMemPoolAttrUsedMemHigh:
      if (*static_cast<std::uint64_t*>(value) != 0) return status(cudaErrorInvalidValue);
      pool->reset_used_high();
      return cudaSuccess;
    case cudaMemPoolAttrReservedMemHigh:
      if (*static_cast<std::uint64_t*>(value) != 0) return status(cudaErrorInvalidValue);
      pool->reset_reserved_high();
      return cudaSuccess;
    case cudaMemPoolReuseFollowEventDependencies:
    case cudaMemPoolReuseAllowOpportunistic:
    case cudaMemPoolReuseAllowInternalDependencies:
      // Freed memory is available at once: a pool cannot hold back memory for streams.
      if (*static_cast<int*>(value) == 0) return refused("cudaMemPoolSetAttribute against reuse");
      return cudaSuccess;
    case cudaMemPoolAttrReservedMemCurrent:
    case cudaMemPoolAttrUsedMemCurrent:
      return status(cudaErrorInvalidValue);
    default:
      return refused("cudaMemPoolSetAttribute with this attribute");
  }
}

PLIMSOLL_API cudaError_t cudaMemPoolSetAccess(cudaMemPool_t handle, const cudaMemAccessDesc* accesses, size_t count) {
  MemoryPool* pool = pool_of(handle);
  if (pool == nullptr) return status(cudaErrorInvalidValue);
  for (size_t i = 0; i < count; ++i) {
    const int other = accesses[i].location.id;
    if (!has_device(other) || (other != pool->device() && !machine().are_peers(other, pool->device()))) {
      return status(cudaErrorInvalidDevice);
    }
  }
  return cudaSuccess;
}

PLIMSOLL_API cudaError_t cudaMemPoolTrimTo(cudaMemPool_t handle, size_t least) {
  MemoryPool* pool = pool_of(handle);
  if (pool == nullptr) return status(cudaErrorInvalidValue);
  pool->trim_to(least);
  return cudaSuccess;
}
