#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "plimsoll/pretend/model/memory/memory_pool.h"

namespace plimsoll::pretend {

/// The pools that a program made on one device. A pool that is destroyed while memory of it is in use lives on until
/// the last of it is freed, as the driver has it. Thread-safe.
class MemoryPools {
 public:
  MemoryPool* create(int device, DeviceMemory& memory);
  /// False: not one of these.
  bool destroy(MemoryPool* pool);
  bool contains(const MemoryPool* pool) const;
  std::optional<Address> allocate(MemoryPool& pool, Bytes bytes);
  /// False: no pool of these has it.
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
