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
/// The stream of memory that belongs to no stream.
inline constexpr ledger::StreamId kNoStream{0};

/// Maps addresses to allocations and passes events to listeners. The sources (CPU tap, host tap, CUDA trace, reporting
/// channel) report to it. The process has one registry, which is never destroyed, because deleters outlive all static
/// objects.
///
/// Thread-safe. Lock order: the allocator's lock, the registry's, the listener's. REQUIRES for all calls: the caller
/// holds no lock that a listener takes.
class Registry {
 public:
  static Registry& of_process();

  /// Reports the live allocations to `listener`, then every event. REQUIRES: `listener` is not subscribed.
  void subscribe(Listener& listener);
  /// `listener` is not called after this returns.
  void unsubscribe(Listener& listener);
  bool has_listeners() const { return listening_.load(std::memory_order_acquire); }

  /// A source found new memory. It replaces a known allocation at this address. Null addresses are ignored.
  void allocated(c10::Device device, const void* address, Bytes bytes, ledger::StreamId stream) noexcept;
  /// Ignores unknown addresses: they were allocated while no listener was subscribed.
  void freed(c10::Device device, const void* address) noexcept;
  void resized(c10::Device device, const void* address, Bytes bytes) noexcept;
  /// Adds the difference between `total`, the allocator's total for the device, and the known total to the block at
  /// `address`, which has `bytes` so far. Returns false if `address` is null or the known total exceeds `total`.
  bool settle(c10::Device device, const void* address, Bytes bytes, Bytes total) noexcept;
  void segment(c10::Device device, std::int64_t delta) noexcept;
  void defect(const char* what) noexcept;

  struct Found {
    ledger::AllocationId id{};
    Bytes bytes = 0;
  };
  /// The allocation that starts at this address.
  std::optional<Found> find(c10::Device device, const void* address) const;
  /// The known allocated bytes of the device.
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
  void resize(DeviceBlocks& of_device, const void* address, Bytes bytes) noexcept;  ///< REQUIRES: the lock is held.

  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<DeviceBlocks>> devices_;
  std::vector<Listener*> listeners_;
  std::atomic<bool> listening_{false};
  std::uint64_t last_id_ = 0;
};

}  // namespace plimsoll::capture
