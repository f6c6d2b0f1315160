#include "plimsoll/pretend/model/memory/memory_pools.h"

#include <algorithm>

namespace plimsoll::pretend {

MemoryPool* MemoryPools::create(int device, DeviceMemory& memory) {
  std::lock_guard lock(mutex_);
  entries_.push_back({std::make_unique<MemoryPool>(device, memory)});
  return entries_.back().pool.get();
}

bool MemoryPools::contains(const MemoryPool* pool) const {
  std::lock_guard lock(mutex_);
  return std::any_of(entries_.begin(), entries_.end(),
                     [pool](const Entry& entry) { return entry.pool.get() == pool && !entry.destroyed; });
}

bool MemoryPools::destroy(MemoryPool* pool) {
  std::lock_guard lock(mutex_);
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [pool](const Entry& entry) { return entry.pool.get() == pool && !entry.destroyed; });
  if (found == entries_.end()) return false;
  if (pool->counters().used == 0) {
    entries_.erase(found);
  } else {
    found->destroyed = true;
  }
  return true;
}

std::optional<Address> MemoryPools::allocate(MemoryPool& pool, Bytes bytes) {
  std::lock_guard lock(mutex_);
  const auto address = pool.allocate(bytes);
  if (address) owner_[*address] = &pool;
  return address;
}

bool MemoryPools::free(Address address) {
  std::lock_guard lock(mutex_);
  const auto found = owner_.find(address);
  if (found == owner_.end()) return false;
  MemoryPool* const pool = found->second;
  owner_.erase(found);
  pool->free(address);
  if (pool->counters().used == 0) {
    std::erase_if(entries_, [pool](const Entry& entry) { return entry.pool.get() == pool && entry.destroyed; });
  }
  return true;
}

void MemoryPools::synchronized() {
  std::lock_guard lock(mutex_);
  for (const Entry& entry : entries_) entry.pool->synchronized();
}

}  // namespace plimsoll::pretend
