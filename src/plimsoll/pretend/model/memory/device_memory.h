#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "plimsoll/base/bytes.h"
#include "plimsoll/pretend/model/memory/address_space.h"
#include "plimsoll/pretend/model/streams/feed.h"

namespace plimsoll::pretend {

/// The unit of physical memory, as in the driver.
inline constexpr Bytes kGranularity = Bytes{2} << 20;

/// A request that was refused for lack of memory.
struct Refusal {
  Bytes requested = 0;
  Reason reason{};
  std::array<Bytes, kReasonCount> used_by{};  ///< The used bytes at that time.
};

/// The used bytes of one device, in total and by reason, now and at the peak.
struct MemoryCounters {
  Bytes capacity = 0;
  Bytes used = 0;
  Bytes peak = 0;
  std::array<Bytes, kReasonCount> used_by{};  ///< Sums to `used`.
  std::array<Bytes, kReasonCount> peak_by{};  ///< At the time of `peak`; sums to `peak`.
  std::uint64_t allocations = 0;              ///< Number of allocations so far.
  std::uint64_t frees = 0;
  std::uint64_t refusals = 0;
  Refusal last_refusal;  ///< Valid if a request was refused.
};

/// The memory of one device: addresses without pages, and a count of physical bytes against a capacity.
///
///     address space  |--seg--|   |--reserved for an expandable segment-----------|      |--seg--|
///     physical       [ 20MiB ]   [2][2][2]                                               [ 2MiB ]   <= capacity
///
/// A plain allocation takes addresses and physical bytes together; the virtual-memory calls take them separately. Bytes
/// without an address (context, NCCL's buffers, library handles) count against the same capacity. Thread-safe.
class DeviceMemory {
 public:
  DeviceMemory(int device, Bytes capacity, Bytes window, Feed& feed);

  /// Takes physical memory and addresses; nothing if out of memory.
  std::optional<Address> allocate(Bytes bytes, Reason reason = Reason::kSegments);

  /// Returns false if `address` is not the start of a live allocation.
  bool free(Address address);

  /// Counts `bytes` without an address, for a request of `requested`. Returns false, and counts nothing, if out of
  /// memory.
  bool charge(Bytes bytes, Reason reason, Bytes requested);
  bool charge(Bytes bytes, Reason reason) { return charge(bytes, reason, bytes); }
  void discharge(Bytes bytes, Reason reason);

  // The virtual-memory calls. A handle represents physical bytes. It lives until it is released and unmapped.
  using Handle = std::uint64_t;
  std::optional<Handle> create(Bytes bytes);
  bool retain(Handle handle);
  bool release(Handle handle);
  std::optional<Bytes> bytes_of(Handle handle) const;
  std::optional<Address> reserve(Bytes bytes);
  bool unreserve(Address address);
  bool map(Address address, Bytes bytes, Handle handle);
  bool unmap(Address address, Bytes bytes);
  std::optional<Handle> handle_at(Address address) const;

  /// Addresses for the device's variables. Their bytes are part of the context.
  static constexpr Bytes kVariables = Bytes{1} << 30;
  Address variables() const { return variables_; }

  bool contains(Address address) const { return space_.contains(address); }

  /// The allocation or reservation that contains `address`.
  std::optional<AddressSpace::Range> range_of(Address address) const;

  MemoryCounters counters() const;
  void reset_peak();

 private:
  struct Physical {
    Bytes bytes;
    int references;
  };
  struct Mapping {
    Bytes bytes;
    Handle handle;
  };

  bool take_physical(Bytes bytes, Reason reason, Bytes requested);
  void give_physical(Bytes bytes, Reason reason);
  /// The bytes that the last reference freed.
  std::optional<Bytes> drop_reference(Handle handle);
  void publish(Happening kind, Address address, Bytes bytes, Reason reason) const;

  const int device_;
  Feed& feed_;
  mutable std::mutex mutex_;
  AddressSpace space_;
  const Address variables_;
  MemoryCounters counters_;
  std::unordered_map<Address, std::pair<Bytes, Reason>> allocations_;
  std::unordered_map<Handle, Physical> physical_;
  std::map<Address, Mapping> mappings_;
  Handle next_handle_ = 1;
};

}  // namespace plimsoll::pretend
