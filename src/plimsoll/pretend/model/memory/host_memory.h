#pragma once

#include <map>
#include <mutex>
#include <optional>

#include "plimsoll/base/bytes.h"

namespace plimsoll::pretend {

struct HostCounters {
  Bytes pinned = 0;  ///< Pinned and registered.
  Bytes pinned_peak = 0;
  Bytes managed = 0;
};

/// The host memory that the driver knows. It is real memory, unlike device memory: scripts read and write it. Pages
/// exist after the first touch. Thread-safe.
class HostMemory {
 public:
  enum class Kind { kPinned, kRegistered, kManaged };

  struct Range {
    void* start;
    Bytes bytes;
    Kind kind;
    unsigned flags;
    int device;  ///< The current device at the time of the allocation.
  };

  /// Returns nothing if the process cannot get the memory.
  std::optional<void*> allocate(Bytes bytes, Kind kind, unsigned flags, int device);
  /// Returns false if `start` is not the start of an allocation of ours.
  bool free(void* start);
  /// Returns false if part of the range is already known.
  bool add(void* start, Bytes bytes, unsigned flags, int device);
  /// Returns false if `start` is not the start of a registered range.
  bool remove(void* start);
  std::optional<Range> find(const void* pointer) const;

  /// Sets the bytes to zero. For large allocations of ours it releases the pages instead, which then read as zeros. So
  /// a job that copies its gradients to the host needs no memory for them.
  void zero(void* start, Bytes bytes);

  HostCounters counters() const;

 private:
  void count(const Range& range, bool added);

  mutable std::mutex mutex_;
  std::map<const char*, Range> ranges_;
  HostCounters counters_;
};

}  // namespace plimsoll::pretend
