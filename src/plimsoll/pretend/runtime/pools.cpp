// Stream-ordered allocation: cudaMallocAsync and memory pools.

#include "plimsoll/pretend/runtime/status.h"

using namespace plimsoll::pretend;
using namespace plimsoll::pretend::runtime;

namespace {

MemoryPool* pool_of(cudaMemPool_t handle) {
  auto* pool = reinterpret_cast<MemoryPool*>(handle);
  return pool != nullptr && pool->magic == MemoryPool::kAlive ? pool : nullptr;
}

cudaMemPool_t handle_of(MemoryPool& pool) { return reinterpret_cast<cudaMemPool_t>(&pool); }

/// Which pool each address of a pool made by the program came from; the default pools are asked directly.
struct MadePools {
  std::mutex mutex;
  std::unordered_map<Address, MemoryPool*> owner;
};

MadePools& made_pools() {
  static auto* const instance = new MadePools;
  return *instance;
}

cudaError_t allocate(void** pointer, size_t bytes, MemoryPool& pool) {
  *pointer = nullptr;
  if (bytes == 0) return cudaSuccess;
  const auto address = pool.allocate(bytes);
  if (!address) return status(cudaErrorMemoryAllocation);
  *pointer = reinterpret_cast<void*>(*address);
  if (&pool != &machine().device(pool.device()).default_pool) {
    std::lock_guard lock(made_pools().mutex);
    made_pools().owner[*address] = &pool;
  }
  return cudaSuccess;
}

}  // namespace

PLIMSOLL_API cudaError_t cudaMallocAsync(void** pointer, size_t bytes, cudaStream_t) {
  return allocate(pointer, bytes, here().default_pool);
}

PLIMSOLL_API cudaError_t cudaMallocFromPoolAsync(void** pointer, size_t bytes, cudaMemPool_t handle, cudaStream_t) {
  MemoryPool* pool = pool_of(handle);
  return pool != nullptr ? allocate(pointer, bytes, *pool) : status(cudaErrorInvalidValue);
}

PLIMSOLL_API cudaError_t cudaFreeAsync(void* pointer, cudaStream_t) {
  if (pointer == nullptr) return cudaSuccess;
  const auto address = reinterpret_cast<Address>(pointer);
  {
    std::lock_guard lock(made_pools().mutex);
    const auto found = made_pools().owner.find(address);
    if (found != made_pools().owner.end()) {
      found->second->free(address);
      made_pools().owner.erase(found);
      return cudaSuccess;
    }
  }
  return cudaFree(pointer);
}

PLIMSOLL_API cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  if (!is_device(device)) return status(cudaErrorInvalidDevice);
  *pool = handle_of(machine().device(device).default_pool);
  return cudaSuccess;
}

PLIMSOLL_API cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int device) {
  return cudaDeviceGetDefaultMemPool(pool, device);
}

PLIMSOLL_API cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* properties) {
  if (properties == nullptr || !is_device(properties->location.id)) return status(cudaErrorInvalidValue);
  Device& device = machine().device(properties->location.id);
  *pool = handle_of(*new MemoryPool(device.index, device.memory));
  return cudaSuccess;
}

PLIMSOLL_API cudaError_t cudaMemPoolDestroy(cudaMemPool_t handle) {
  MemoryPool* pool = pool_of(handle);
  if (pool == nullptr || pool == &machine().device(pool->device()).default_pool) return status(cudaErrorInvalidValue);
  std::lock_guard lock(made_pools().mutex);
  std::erase_if(made_pools().owner, [pool](const auto& entry) { return entry.second == pool; });
  pool->magic = 0;
  delete pool;
  return cudaSuccess;
}

PLIMSOLL_API cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t handle, cudaMemPoolAttr attribute, void* value) {
  MemoryPool* pool = pool_of(handle);
  if (pool == nullptr) return status(cudaErrorInvalidValue);
  const auto counters = pool->counters();
  switch (attribute) {
    case cudaMemPoolAttrReleaseThreshold:
      *static_cast<std::uint64_t*>(value) = counters.threshold;
      return cudaSuccess;
    case cudaMemPoolAttrReservedMemCurrent:
      *static_cast<std::uint64_t*>(value) = counters.reserved;
      return cudaSuccess;
    case cudaMemPoolAttrReservedMemHigh:
      *static_cast<std::uint64_t*>(value) = counters.reserved_high;
      return cudaSuccess;
    case cudaMemPoolAttrUsedMemCurrent:
      *static_cast<std::uint64_t*>(value) = counters.used;
      return cudaSuccess;
    case cudaMemPoolAttrUsedMemHigh:
      *static_cast<std::uint64_t*>(value) = counters.used_high;
      return cudaSuccess;
    default:
      *static_cast<int*>(value) = 1;
      return cudaSuccess;
  }
}

PLIMSOLL_API cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t handle, cudaMemPoolAttr attribute, void* value) {
  MemoryPool* pool = pool_of(handle);
  if (pool == nullptr) return status(cudaErrorInvalidValue);
  if (attribute == cudaMemPoolAttrReleaseThreshold) pool->set_threshold(*static_cast<std::uint64_t*>(value));
  if (attribute == cudaMemPoolAttrUsedMemHigh) pool->reset_used_high();
  if (attribute == cudaMemPoolAttrReservedMemHigh) pool->reset_reserved_high();
  return cudaSuccess;
}

PLIMSOLL_API cudaError_t cudaMemPoolSetAccess(cudaMemPool_t handle, const cudaMemAccessDesc*, size_t) {
  return status(pool_of(handle) != nullptr ? cudaSuccess : cudaErrorInvalidValue);
}

PLIMSOLL_API cudaError_t cudaMemPoolTrimTo(cudaMemPool_t handle, size_t least) {
  MemoryPool* pool = pool_of(handle);
  if (pool == nullptr) return status(cudaErrorInvalidValue);
  pool->trim_to(least);
  return cudaSuccess;
}
