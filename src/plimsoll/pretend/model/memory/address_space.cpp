#include "plimsoll/pretend/model/memory/address_space.h"

#include <sys/mman.h>

#include <algorithm>
#include <iterator>

#include "plimsoll/base/errors.h"

namespace plimsoll::pretend {

AddressSpace::AddressSpace(Bytes bytes, Bytes least) {
  for (; bytes >= least; bytes /= 2) {
    void* start = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start == MAP_FAILED) continue;
    // Allocations are aligned to the granularity, so the range begins at a multiple of it.
    constexpr Bytes kAlignment = Bytes{2} << 20;
    const Address raw = reinterpret_cast<Address>(start);
    base_ = round_up(raw, kAlignment);
    bytes_ = bytes - (base_ - raw);
    allocatable_ = bytes_;
    next_ = base_;
    return;
  }
  throw SystemError("cannot reserve " + format_bytes(least) + " of addresses for a pretend GPU", errno,
                    "; raise the limit on virtual memory (ulimit -v unlimited)");
}

AddressSpace::~AddressSpace() { munmap(reinterpret_cast<void*>(base_), bytes_); }

std::optional<Address> AddressSpace::first_gap(Bytes bytes) const {
  Address candidate = base_;
  for (const auto& [start, taken] : taken_) {
    if (start - candidate >= bytes) return candidate;
    candidate = start + taken;
  }
  if (base_ + allocatable_ - candidate >= bytes) return candidate;
  return std::nullopt;
}

std::optional<Address> AddressSpace::take(Bytes bytes) {
  std::optional<Address> start;
  if (bytes <= base_ + allocatable_ - next_) {
    start = next_;
  } else {
    start = first_gap(bytes);
  }
  if (start) {
    taken_.emplace(*start, bytes);
    next_ = std::max(next_, *start + bytes);  // A gap at the end may extend past next_.
  }
  return start;
}

Address AddressSpace::set_aside(Bytes bytes) {
  allocatable_ -= bytes;
  return base_ + allocatable_;
}

void AddressSpace::give_back(Address start) { taken_.erase(start); }

std::optional<AddressSpace::Range> AddressSpace::range_of(Address address) const {
  const auto after = taken_.upper_bound(address);
  if (after == taken_.begin()) return std::nullopt;
  const auto& [start, bytes] = *std::prev(after);
  if (address - start >= bytes) return std::nullopt;
  return Range{start, bytes};
}

}  // namespace plimsoll::pretend
