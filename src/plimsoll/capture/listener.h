#pragma once

#include <c10/core/Device.h>

#include <cstdint>

#include "plimsoll/base/bytes.h"
#include "plimsoll/ledger/ids.h"

namespace plimsoll::capture {

/// One allocation, as its allocator made it. Ids are unique in the process, over all devices.
struct Allocation {
  ledger::AllocationId id{};
  c10::Device device{c10::kCPU};
  /// The bytes that the allocator counts. On CUDA and for pinned memory this is the block, which may exceed the
  /// request.
  Bytes bytes = 0;
  ledger::StreamId stream{};
  std::uintptr_t address = 0;
};

/// Receives allocation events, on the thread that allocates or frees, while the allocator's lock is held. So a listener
/// must be fast, must not throw, and must not call an allocator or this layer. Calls to one listener never overlap.
class Listener {
 public:
  virtual void allocated(const Allocation& allocation) noexcept = 0;
  virtual void freed(ledger::AllocationId id) noexcept = 0;
  /// The exact size of the allocation is known now. The exact size of a CUDA block is known one event later, and its
  /// device has no event in between.
  virtual void resized(ledger::AllocationId id, Bytes bytes) noexcept = 0;
  /// The device's caching allocator took (delta > 0) or gave back (delta < 0) a segment.
  virtual void segment(c10::Device device, std::int64_t delta) noexcept = 0;
  /// An event was missed or contradicts the books. `what` is a sentence that lives forever.
  virtual void defect(const char* what) noexcept = 0;

 protected:
  ~Listener() = default;
};

}  // namespace plimsoll::capture
