#include "plimsoll/pretend/model/memory/host_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>

namespace plimsoll::pretend {

void HostMemory::count(const Range& range, bool added) {
  Bytes& counter = range.kind == Kind::kManaged ? counters_.managed : counters_.pinned;
  counter = added ? counter + range.bytes : counter - range.bytes;
  counters_.pinned_peak = std::max(counters_.pinned_peak, counters_.pinned);
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

void HostMemory::zero(void* start, Bytes bytes) {
  constexpr Bytes kWorthACall = Bytes{1} << 20;
  constexpr std::uintptr_t kPage = 4096;
  auto* const first = static_cast<char*>(start);
  const auto range = bytes < kWorthACall ? std::nullopt : find(start);
  if (range && range->kind != Kind::kRegistered && first + bytes <= static_cast<char*>(range->start) + range->bytes) {
    char* const pages =
        first + (round_up(reinterpret_cast<std::uintptr_t>(first), kPage) - reinterpret_cast<std::uintptr_t>(first));
    char* const end = first + bytes;
    char* const pages_end = end - reinterpret_cast<std::uintptr_t>(end) % kPage;
    if (madvise(pages, static_cast<std::size_t>(pages_end - pages), MADV_DONTNEED) == 0) {
      std::memset(first, 0, static_cast<std::size_t>(pages - first));
      std::memset(pages_end, 0, static_cast<std::size_t>(end - pages_end));
      return;
    }
  }
  std::memset(first, 0, bytes);
}

HostCounters HostMemory::counters() const {
  std::lock_guard lock(mutex_);
  return counters_;
}

}  // namespace plimsoll::pretend
