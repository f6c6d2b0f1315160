#pragma once

#include "plimsoll/pretend/model/machine.h"

namespace plimsoll::pretend {

/// The pretend GPU has no time. A constant millisecond avoids divisions by zero and keeps autotuning reproducible: all
/// candidates are equally fast.
inline constexpr float kElapsedMilliseconds = 1.0F;

/// The possible answers for the time between two events.
enum class Elapsed {
  kKnown,
  kInvalid,   ///< An event was not recorded, or was created without timing.
  kNotReady,  ///< Both were recorded; one has not completed.
};

inline Elapsed elapsed(const StreamEvent& start, const StreamEvent& end) {
  constexpr unsigned kDisableTiming = 2;  // cudaEventDisableTiming and CU_EVENT_DISABLE_TIMING
  for (const StreamEvent* event : {&start, &end}) {
    const bool recorded = event->recorded.load(std::memory_order_relaxed);
    if (!recorded || (event->flags & kDisableTiming) != 0) return Elapsed::kInvalid;
  }
  return machine().completed(start) && machine().completed(end) ? Elapsed::kKnown : Elapsed::kNotReady;
}

}  // namespace plimsoll::pretend
