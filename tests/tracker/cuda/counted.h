#pragma once

#include <c10/cuda/CUDACachingAllocator.h>
#include <doctest/doctest.h>

#include <cstdint>
#include <string>

#include "tracker/looking.h"

/// The tests' own count of the GPU: its allocator's.
namespace plimsoll {

inline const std::string kGpu = "cuda:0";

inline std::int64_t active_bytes() {
  return c10::cuda::CUDACachingAllocator::getDeviceStats(0)
      .active_bytes[static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE)]
      .current;
}

/// The bytes of the GPU at an instant when no other thread changes them. (Autograd's thread may drop a graph after
/// backward has returned.) The total is the allocator's.
inline DeviceSnapshot on_gpu(MemTracker& tracker) {
  for (;;) {
    const auto counted = active_bytes();
    const auto found = now(tracker, kGpu);
    if (counted != active_bytes()) continue;
    REQUIRE(found.total() == counted);
    return found;
  }
}

}  // namespace plimsoll
