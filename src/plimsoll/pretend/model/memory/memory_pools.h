#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "plimsoll/pretend/model/memory/memory_pool.h"

namespace plimsoll::pretend {

/// The pools that the program made on one device. A destroyed pool lives until its memory is free, as in the driver.
/// Thread-safe.
class MemoryPools {
 public:
  MemoryPool* create(int device, DeviceMemory& memory);
  /// Returns false if `pool` is not one of these.
  bool destroy(MemoryPool* pool);
  bool contains(const MemoryPool* pool) const;
  std::optional<Address> allocate(MemoryPool& pool, Bytes bytes);
  /// Returns false if no pool here has the address.
  bool free(Address address);
  void synchronized();

 private:
  struct Entry {
    std::unique_ptr<MemoryPool> pool;
    bool destroyed = false;
  };

  mutable std::mutex mutex_;
  std::vector<Entry> entries_;
  std::unordered_map<Address, MemoryPool*> owner_;
};

}  // namespace plimsoll::pretend
