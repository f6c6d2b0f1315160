#include "plimsoll/pretend/model/memory/device_memory.h"

#include <iterator>

namespace plimsoll::pretend {

DeviceMemory::DeviceMemory(int device, Bytes capacity, Bytes window, Feed& feed)
    : device_(device),
      feed_(feed),
      space_(window, capacity * 2 + kVariables),
      variables_(space_.set_aside(kVariables)) {
  counters_.capacity = capacity;
}

bool DeviceMemory::take_physical(Bytes bytes, Reason reason, Bytes requested) {
  if (bytes > counters_.capacity - counters_.used) {
    ++counters_.refusals;
    counters_.last_refusal = {.requested = requested, .reason = reason, .used_by = counters_.used_by};
    return false;
  }
  counters_.used += bytes;
  counters_.used_by[static_cast<std::size_t>(reason)] += bytes;
  ++counters_.allocations;
  if (counters_.used > counters_.peak) {
    counters_.peak = counters_.used;
    counters_.peak_by = counters_.used_by;
  }
  return true;
}

void DeviceMemory::give_physical(Bytes bytes, Reason reason) {
  counters_.used -= bytes;
  counters_.used_by[static_cast<std::size_t>(reason)] -= bytes;
  ++counters_.frees;
}

void DeviceMemory::publish(Happening kind, Address address, Bytes bytes, Reason reason) const {
  feed_.publish({.kind = kind, .reason = reason, .device = device_, .bytes = bytes, .address = address});
}

std::optional<Address> DeviceMemory::allocate(Bytes bytes, Reason reason) {
  // A request above the capacity may overflow when rounded up.
  const Bytes rounded = bytes > counters_.capacity ? bytes : round_up(bytes, kGranularity);
  std::optional<Address> address;
  {
    std::lock_guard lock(mutex_);
    if (!take_physical(rounded, reason, bytes)) return std::nullopt;
    address = space_.take(rounded);
    if (!address) {
      give_physical(rounded, reason);
      return std::nullopt;
    }
    allocations_.emplace(*address, std::pair{rounded, reason});
  }
  publish(Happening::kAllocated, *address, rounded, reason);
  return address;
}

bool DeviceMemory::free(Address address) {
  Bytes bytes = 0;
  Reason reason{};
  {
    std::lock_guard lock(mutex_);
    const auto found = allocations_.find(address);
    if (found == allocations_.end()) return false;
    std::tie(bytes, reason) = found->second;
    allocations_.erase(found);
    space_.give_back(address);
    give_physical(bytes, reason);
  }
  publish(Happening::kFreed, address, bytes, reason);
  return true;
}

bool DeviceMemory::charge(Bytes bytes, Reason reason, Bytes requested) {
  if (bytes == 0) return true;
  {
    std::lock_guard lock(mutex_);
    if (!take_physical(bytes, reason, requested)) return false;
  }
  publish(Happening::kAllocated, 0, bytes, reason);
  return true;
}

void DeviceMemory::discharge(Bytes bytes, Reason reason) {
  if (bytes == 0) return;
  {
    std::lock_guard lock(mutex_);
    give_physical(bytes, reason);
  }
  publish(Happening::kFreed, 0, bytes, reason);
}

std::optional<DeviceMemory::Handle> DeviceMemory::create(Bytes bytes) {
  Handle handle = 0;
  {
    std::lock_guard lock(mutex_);
    if (!take_physical(bytes, Reason::kSegments, bytes)) return std::nullopt;
    handle = next_handle_++;
    physical_.emplace(handle, Physical{bytes, 1});
  }
  publish(Happening::kAllocated, 0, bytes, Reason::kSegments);
  return handle;
}

bool DeviceMemory::retain(Handle handle) {
  std::lock_guard lock(mutex_);
  const auto found = physical_.find(handle);
  if (found == physical_.end()) return false;
  ++found->second.references;
  return true;
}

std::optional<Bytes> DeviceMemory::drop_reference(Handle handle) {
  const auto found = physical_.find(handle);
  if (--found->second.references > 0) return std::nullopt;
  const Bytes bytes = found->second.bytes;
  give_physical(bytes, Reason::kSegments);
  physical_.erase(found);
  return bytes;
}

bool DeviceMemory::release(Handle handle) {
  std::optional<Bytes> freed;
  {
    std::lock_guard lock(mutex_);
    if (!physical_.contains(handle)) return false;
    freed = drop_reference(handle);
  }
  if (freed) publish(Happening::kFreed, 0, *freed, Reason::kSegments);
  return true;
}

std::optional<Bytes> DeviceMemory::bytes_of(Handle handle) const {
  std::lock_guard lock(mutex_);
  const auto found = physical_.find(handle);
  if (found == physical_.end()) return std::nullopt;
  return found->second.bytes;
}

std::optional<Address> DeviceMemory::reserve(Bytes bytes) {
  if (bytes == 0 || bytes > space_.bytes()) return std::nullopt;
  std::lock_guard lock(mutex_);
  return space_.take(round_up(bytes, kGranularity));
}

bool DeviceMemory::unreserve(Address address) {
  std::lock_guard lock(mutex_);
  const auto range = space_.range_of(address);
  if (!range || range->start != address || allocations_.contains(address)) return false;
  const auto mapped = mappings_.lower_bound(address);
  if (mapped != mappings_.end() && mapped->first < address + range->bytes) return false;
  space_.give_back(address);
  return true;
}

bool DeviceMemory::map(Address address, Bytes bytes, Handle handle) {
  std::lock_guard lock(mutex_);
  const auto found = physical_.find(handle);
  const auto range = space_.range_of(address);
  if (found == physical_.end() || bytes == 0 || bytes > found->second.bytes) return false;
  if (!range || allocations_.contains(range->start) || address + bytes > range->start + range->bytes) return false;
  const auto after = mappings_.lower_bound(address);
  if (after != mappings_.end() && after->first < address + bytes) return false;
  if (after != mappings_.begin() && std::prev(after)->first + std::prev(after)->second.bytes > address) return false;
  ++found->second.references;
  mappings_.emplace(address, Mapping{bytes, handle});
  return true;
}

bool DeviceMemory::unmap(Address address, Bytes bytes) {
  Bytes freed = 0;
  {
    std::lock_guard lock(mutex_);
    auto mapping = mappings_.lower_bound(address);
    if (mapping == mappings_.end() || mapping->first != address) return false;
    while (mapping != mappings_.end() && mapping->first < address + bytes) {
      freed += drop_reference(mapping->second.handle).value_or(0);
      mapping = mappings_.erase(mapping);
    }
  }
  if (freed != 0) publish(Happening::kFreed, address, freed, Reason::kSegments);
  return true;
}

std::optional<DeviceMemory::Handle> DeviceMemory::handle_at(Address address) const {
  std::lock_guard lock(mutex_);
  const auto after = mappings_.upper_bound(address);
  if (after == mappings_.begin()) return std::nullopt;
  const auto& [start, mapping] = *std::prev(after);
  if (address - start >= mapping.bytes) return std::nullopt;
  return mapping.handle;
}

std::optional<AddressSpace::Range> DeviceMemory::range_of(Address address) const {
  std::lock_guard lock(mutex_);
  return space_.range_of(address);
}

MemoryCounters DeviceMemory::counters() const {
  std::lock_guard lock(mutex_);
  return counters_;
}

void DeviceMemory::reset_peak() {
  std::lock_guard lock(mutex_);
  counters_.peak = counters_.used;
  counters_.peak_by = counters_.used_by;
}

}  // namespace plimsoll::pretend
