#pragma once

#include <map>
#include <mutex>
#include <optional>

#include "plimsoll/base/bytes.h"

namespace plimsoll::pretend {

/// Host memory that the driver knows of. Unlike device memory it is real: scripts read and write it.
/// Pages come when they are touched. Thread-safe.
class HostMemory {
 public:
  enum class Kind { kPinned, kRegistered, kManaged };

  struct Range {
    void* start;
    Bytes bytes;
    Kind kind;
    unsigned flags;
    int device;  ///< the current device when it was made
  };

  /// None: the process could not get it.
  std::optional<void*> allocate(Bytes bytes, Kind kind, unsigned flags, int device);
  /// False: not the start of an allocation of ours.
  bool free(void* start);
  /// False: part of it is known already.
  bool add(void* start, Bytes bytes, unsigned flags, int device);
  /// False: not the start of a registered range.
  bool remove(void* start);
  std::optional<Range> find(const void* pointer) const;

  /// Makes the bytes zeros. Of large allocations of ours the pages are given back instead of written: what is read of
  /// them is zeros all the same, and a job that copies its gradients to the host needs no room for them.
  void zero(void* start, Bytes bytes);

  Bytes pinned() const;  ///< pinned and registered
  Bytes pinned_peak() const;
  Bytes managed() const;

 private:
  void count(const Range& range, bool added);

  mutable std::mutex mutex_;
  std::map<const char*, Range> ranges_;
  Bytes pinned_ = 0;
  Bytes pinned_peak_ = 0;
  Bytes managed_ = 0;
};

}  // namespace plimsoll::pretend
