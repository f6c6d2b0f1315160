#pragma once

#include <c10/core/Device.h>
#include <c10/util/flat_hash_map.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "plimsoll/base/bytes.h"
#include "plimsoll/capture/listener.h"
#include "plimsoll/ledger/ids.h"

namespace plimsoll::capture {

inline const c10::Device kCpu(c10::kCPU);
/// Of memory that no stream owns.
inline constexpr ledger::StreamId kNoStream{0};

/// Which addresses are allocated, and who hears of it. The sources (CPU tap, host tap, CUDA trace, reporting channel)
/// tell it; there is one in the process, and it is never destroyed, because deleters outlive every static object.
///
/// Thread-safe. Lock order: the allocator's own lock, then this one, then whatever a listener locks. Whoever calls in
/// here holds no lock that a listener takes.
class Registry {
 public:
  static Registry& of_process();

  /// From now on `listener` hears of everything; first of all that is alive. REQUIRES: not subscribed.
  void subscribe(Listener& listener);
  /// When this returns, `listener` is called no more.
  void unsubscribe(Listener& listener);
  bool has_listeners() const { return listening_.load(std::memory_order_acquire); }

  /// A source found new memory. What was known at that address is gone. Null addresses are no memory.
  void allocated(c10::Device device, const void* address, Bytes bytes, ledger::StreamId stream) noexcept;
  /// Nothing happens for an address that is not known: it was made when nobody listened.
  void freed(c10::Device device, const void* address) noexcept;
  void resized(c10::Device device, const void* address, Bytes bytes) noexcept;
  /// All that is allocated there is `total`; what is not known of it, the block at `address` has beyond `bytes`.
  /// Returns false where that cannot be: there is no such block, or too much is known.
  bool settle(c10::Device device, const void* address, Bytes bytes, Bytes total) noexcept;
  void segment(c10::Device device, std::int64_t delta) noexcept;
  void defect(const char* what) noexcept;

  struct Found {
    ledger::AllocationId id{};
    Bytes bytes = 0;
  };
  /// The allocation that begins at this address.
  std::optional<Found> find(c10::Device device, const void* address) const;
  /// What is known to be allocated there, in all.
  Bytes total(c10::Device device) const;

 private:
  struct Block {
    ledger::AllocationId id{};
    Bytes bytes = 0;
    ledger::StreamId stream{};
  };
  struct DeviceBlocks {
    c10::Device device{c10::kCPU};
    ska::flat_hash_map<std::uintptr_t, Block> blocks;
    Bytes total = 0;
    Bytes reserved = 0;
  };

  DeviceBlocks& blocks_of(c10::Device device);
  const DeviceBlocks* known_blocks_of(c10::Device device) const;
  void resize(DeviceBlocks& of_device, const void* address, Bytes bytes) noexcept;  ///< REQUIRES: the lock.

  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<DeviceBlocks>> devices_;
  std::vector<Listener*> listeners_;
  std::atomic<bool> listening_{false};
  std::uint64_t last_id_ = 0;
};

}  // namespace plimsoll::capture
