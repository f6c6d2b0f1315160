#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "plimsoll/base/bytes.h"
#include "plimsoll/pretend/model/memory/device_memory.h"

namespace plimsoll::pretend {

/// A stream-ordered memory pool (cudaMallocAsync). The driver remaps physical memory freely, so a pool does not
/// fragment. It holds the used bytes, rounded up to its chunk. It keeps freed memory until a synchronisation finds more
/// than `threshold` held, or until a trim. Thread-safe.
class MemoryPool {
 public:
  /// The growth step of a pool. Observed in the reserved bytes of the default pool; the vendor does not document it.
  static constexpr Bytes kChunk = Bytes{32} << 20;
  static constexpr Bytes kAlignment = 512;

  MemoryPool(int device, DeviceMemory& memory) : device_(device), memory_(memory) {}
  ~MemoryPool();
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;

  int device() const { return device_; }

  std::optional<Address> allocate(Bytes bytes);
  bool free(Address address);
  void synchronized();
  void trim_to(Bytes least);

  struct Counters {
    Bytes used = 0, used_high = 0, reserved = 0, reserved_high = 0, threshold = 0;
  };
  Counters counters() const;
  void set_threshold(Bytes threshold);
  void reset_used_high();
  void reset_reserved_high();

 private:
  void shrink_to(Bytes least);

  const int device_;
  DeviceMemory& memory_;
  mutable std::mutex mutex_;
  Counters counters_;
  std::unordered_map<Address, Bytes> allocations_;
};

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
