#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "plimsoll/base/bytes.h"

namespace plimsoll::pretend {

using Address = std::uint64_t;

/// A range of the process's addresses without pages. All addresses in it are device memory; a host access faults, as on
/// a real GPU. Addresses are given out upwards, and gaps are reused only after the end is reached. So the addresses of
/// a run are reproducible. Not thread-safe: DeviceMemory locks.
class AddressSpace {
 public:
  /// Reserves `bytes`; halves that, as often as the process's limits require, down to `least`. Throws InvalidArgument
  /// if `least` bytes cannot be reserved.
  AddressSpace(Bytes bytes, Bytes least);
  ~AddressSpace();
  AddressSpace(const AddressSpace&) = delete;
  AddressSpace& operator=(const AddressSpace&) = delete;

  bool contains(Address address) const { return address - base_ < bytes_; }
  Address base() const { return base_; }
  Bytes bytes() const { return bytes_; }

  /// Takes a free range of `bytes` (a multiple of the granularity); nothing if no gap is large enough.
  std::optional<Address> take(Bytes bytes);

  /// Takes `bytes` at the end of the range permanently.
  Address set_aside(Bytes bytes);

  /// Frees a range. REQUIRES: `start` came from take() and is still taken.
  void give_back(Address start);

  /// The taken range that contains `address`.
  struct Range {
    Address start;
    Bytes bytes;
  };
  std::optional<Range> range_of(Address address) const;

 private:
  std::optional<Address> first_gap(Bytes bytes) const;

  Address base_ = 0;
  Bytes bytes_ = 0;
  Bytes allocatable_ = 0;  ///< Without the bytes of set_aside().
  Address next_ = 0;
  std::map<Address, Bytes> taken_;
};

}  // namespace plimsoll::pretend
