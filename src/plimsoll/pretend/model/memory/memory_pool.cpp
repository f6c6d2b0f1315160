#include "plimsoll/pretend/model/memory/memory_pool.h"

#include <algorithm>

namespace plimsoll::pretend {

MemoryPool::~MemoryPool() {
  for (const auto& [address, bytes] : allocations_) memory_.unreserve(address);
  memory_.discharge(counters_.reserved, Reason::kSegments);
}

std::optional<Address> MemoryPool::allocate(Bytes bytes) {
  std::lock_guard lock(mutex_);
  if (bytes > memory_.counters().capacity) {  // May overflow when rounded up.
    memory_.charge(bytes, Reason::kSegments);
    return std::nullopt;
  }
  const Bytes rounded = round_up(std::max<Bytes>(bytes, 1), kAlignment);
  const Bytes used = counters_.used + rounded;
  const Bytes reserved = std::max(counters_.reserved, round_up(used, kChunk));
  if (reserved > counters_.reserved && !memory_.charge(reserved - counters_.reserved, Reason::kSegments, bytes)) {
    return std::nullopt;
  }
  counters_.reserved = reserved;
  counters_.reserved_high = std::max(counters_.reserved_high, reserved);
  const auto address = memory_.reserve(rounded);
  if (!address) return std::nullopt;
  allocations_.emplace(*address, rounded);
  counters_.used = used;
  counters_.used_high = std::max(counters_.used_high, used);
  return address;
}

bool MemoryPool::free(Address address) {
  std::lock_guard lock(mutex_);
  const auto found = allocations_.find(address);
  if (found == allocations_.end()) return false;
  counters_.used -= found->second;
  memory_.unreserve(address);
  allocations_.erase(found);
  return true;
}

void MemoryPool::shrink_to(Bytes least) {
  const Bytes kept = std::max(round_up(counters_.used, kChunk), round_up(least, kChunk));
  if (kept >= counters_.reserved) return;
  memory_.discharge(counters_.reserved - kept, Reason::kSegments);
  counters_.reserved = kept;
}

void MemoryPool::synchronized() {
  std::lock_guard lock(mutex_);
  // A threshold close to 2^64 means "keep everything" and would overflow when rounded up.
  if (counters_.threshold < counters_.reserved) shrink_to(counters_.threshold);
}

void MemoryPool::trim_to(Bytes least) {
  std::lock_guard lock(mutex_);
  if (least < counters_.reserved) shrink_to(least);
}

MemoryPool::Counters MemoryPool::counters() const {
  std::lock_guard lock(mutex_);
  return counters_;
}

void MemoryPool::set_threshold(Bytes threshold) {
  std::lock_guard lock(mutex_);
  counters_.threshold = threshold;
}

void MemoryPool::reset_used_high() {
  std::lock_guard lock(mutex_);
  counters_.used_high = counters_.used;
}

void MemoryPool::reset_reserved_high() {
  std::lock_guard lock(mutex_);
  counters_.reserved_high = counters_.reserved;
}

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
