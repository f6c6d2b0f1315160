#pragma once

#include "plimsoll/pretend/model/machine.h"

namespace plimsoll::pretend {

/// No time passes on the pretended GPU. One millisecond, always, keeps divisions by it defined and autotuning
/// reproducible: every candidate is as fast as the first.
inline constexpr float kElapsedMilliseconds = 1.0F;

/// What CUDA answers when it is asked for the time between two events.
enum class Elapsed {
  kKnown,
  kInvalid,   ///< one of them was not recorded, or was made without timing
  kNotReady,  ///< both were recorded, and one has not completed
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
