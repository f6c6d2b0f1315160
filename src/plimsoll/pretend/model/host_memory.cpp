#include "plimsoll/pretend/model/host_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <iterator>

namespace plimsoll::pretend {

void HostMemory::count(const Range& range, bool added) {
  Bytes& counter = range.kind == Kind::kManaged ? managed_ : pinned_;
  counter = added ? counter + range.bytes : counter - range.bytes;
  pinned_peak_ = std::max(pinned_peak_, pinned_);
}

std::optional<void*> HostMemory::allocate(Bytes bytes, Kind kind, unsigned flags, int device) {
  bytes = std::max<Bytes>(bytes, 1);
  void* start = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (start == MAP_FAILED) return std::nullopt;
  std::lock_guard lock(mutex_);
  const Range range{start, bytes, kind, flags, device};
  ranges_.emplace(static_cast<const char*>(start), range);
  count(range, true);
  return start;
}

bool HostMemory::free(void* start) {
  std::lock_guard lock(mutex_);
  const auto found = ranges_.find(static_cast<const char*>(start));
  if (found == ranges_.end() || found->second.kind == Kind::kRegistered) return false;
  count(found->second, false);
  munmap(start, found->second.bytes);
  ranges_.erase(found);
  return true;
}

bool HostMemory::add(void* start, Bytes bytes, unsigned flags, int device) {
  std::lock_guard lock(mutex_);
  const auto* first = static_cast<const char*>(start);
  const auto after = ranges_.lower_bound(first);
  if (after != ranges_.end() && after->first < first + bytes) return false;
  if (after != ranges_.begin() && std::prev(after)->first + std::prev(after)->second.bytes > first) return false;
  const Range range{start, bytes, Kind::kRegistered, flags, device};
  ranges_.emplace(first, range);
  count(range, true);
  return true;
}

bool HostMemory::remove(void* start) {
  std::lock_guard lock(mutex_);
  const auto found = ranges_.find(static_cast<const char*>(start));
  if (found == ranges_.end() || found->second.kind != Kind::kRegistered) return false;
  count(found->second, false);
  ranges_.erase(found);
  return true;
}

std::optional<HostMemory::Range> HostMemory::find(const void* pointer) const {
  std::lock_guard lock(mutex_);
  const auto* wanted = static_cast<const char*>(pointer);
  const auto after = ranges_.upper_bound(wanted);
  if (after == ranges_.begin()) return std::nullopt;
  const auto& [start, range] = *std::prev(after);
  if (wanted >= start + range.bytes) return std::nullopt;
  return range;
}

Bytes HostMemory::pinned() const {
  std::lock_guard lock(mutex_);
  return pinned_;
}

Bytes HostMemory::pinned_peak() const {
  std::lock_guard lock(mutex_);
  return pinned_peak_;
}

Bytes HostMemory::managed() const {
  std::lock_guard lock(mutex_);
  return managed_;
}

}  // namespace plimsoll::pretend
