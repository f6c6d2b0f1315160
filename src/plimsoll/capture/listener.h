#pragma once

#include <c10/core/Device.h>

#include <cstdint>

#include "plimsoll/base/bytes.h"
#include "plimsoll/ledger/ids.h"

namespace plimsoll::capture {

/// One allocation, as its allocator made it. Ids are given once in the life of the process, over all devices.
struct Allocation {
  ledger::AllocationId id{};
  c10::Device device{c10::kCPU};
  /// What the allocator counts for it: on CUDA, and for pinned memory, its block, which may be larger than was asked
  /// for.
  Bytes bytes = 0;
  ledger::StreamId stream{};
  std::uintptr_t address = 0;
};

/// Hears of memory, on the thread that asks for it or gives it back, with the allocator's lock held: so it is quick,
/// never throws, and calls neither an allocator nor this layer. Calls of one listener never overlap.
class Listener {
 public:
  virtual void allocated(const Allocation& allocation) noexcept = 0;
  virtual void freed(ledger::AllocationId id) noexcept = 0;
  /// The allocation is known better now: a CUDA block's true size is known one event after it was made, and nothing
  /// happens on its device in between.
  virtual void resized(ledger::AllocationId id, Bytes bytes) noexcept = 0;
  /// The device's caching allocator took (delta > 0) or gave back (delta < 0) a segment.
  virtual void segment(c10::Device device, std::int64_t delta) noexcept = 0;
  /// What was heard cannot be true, or something was missed; `what` says it in words and lives for ever.
  virtual void defect(const char* what) noexcept = 0;

 protected:
  ~Listener() = default;
};

}  // namespace plimsoll::capture
