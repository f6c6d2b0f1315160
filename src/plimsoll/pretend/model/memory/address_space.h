#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "plimsoll/base/bytes.h"

namespace plimsoll::pretend {

using Address = std::uint64_t;

/// A window of the process's addresses that has no pages behind it: whatever lies in it is device memory, and touching
/// it from the host faults, as it would on a real GPU. Addresses are handed out upwards and come round to the first gap
/// only when the window's end is reached, so a run's addresses are the same every time.
/// Not thread-safe: DeviceMemory locks.
class AddressSpace {
 public:
  /// Reserves `bytes`, or half of it as often as the process's limits demand, down to `least`.
  /// Throws InvalidArgument when even `least` cannot be had.
  AddressSpace(Bytes bytes, Bytes least);
  ~AddressSpace();
  AddressSpace(const AddressSpace&) = delete;
  AddressSpace& operator=(const AddressSpace&) = delete;

  bool contains(Address address) const { return address - base_ < bytes_; }
  Address base() const { return base_; }
  Bytes bytes() const { return bytes_; }

  /// A free range of `bytes` (a multiple of the granularity), now taken; none when no gap is large enough.
  std::optional<Address> take(Bytes bytes);

  /// Takes `bytes` at the window's end for good.
  Address set_aside(Bytes bytes);

  /// Gives a range back. REQUIRES: `start` came from take() and was not given back since.
  void give_back(Address start);

  /// The taken range that `address` lies in.
  struct Range {
    Address start;
    Bytes bytes;
  };
  std::optional<Range> range_of(Address address) const;

 private:
  std::optional<Address> first_gap(Bytes bytes) const;

  Address base_ = 0;
  Bytes bytes_ = 0;
  Bytes allocatable_ = 0;  ///< without what was set aside
  Address next_ = 0;
  std::map<Address, Bytes> taken_;
};

}  // namespace plimsoll::pretend
