#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "plimsoll/base/bytes.h"

namespace plimsoll::pretend::cufft {

enum Result : int {
  kSuccess = 0x0,
  kInvalidPlan = 0x1,
  kAllocFailed = 0x2,
  kInvalidType = 0x3,
  kInvalidValue = 0x4,
  kInvalidSize = 0x8,
  kNotSupported = 0x10,
};

/// cufftType: a letter before and after the 2 of its name.
enum Transform : int { kC2C = 0x29, kR2C = 0x2a, kC2R = 0x2c, kZ2Z = 0x69, kD2Z = 0x6a, kZ2D = 0x6c };

/// A cufftHandle is a number, not a pointer.
using PlanId = int;

/// Workspace bytes of `batch` transforms of `lengths`; `element` is the size of one complex number. cuFFT publishes
/// only a bound, eight complex copies of the data. This is an estimate within it:
///   - one dimension, a power of two: 0, the transform runs in place in shared memory, pass by pass;
///   - lengths whose prime factors are 2, 3, 5 and 7: one complex copy, between passes or dimensions;
///   - any other: Bluestein's method, a convolution on the next power of two above twice the length, in and out.
Bytes work_bytes(const std::vector<std::int64_t>& lengths, std::int64_t batch, Bytes element);

struct Plan {
  int device = 0;
  bool made = false;
  bool auto_allocation = true;
  Bytes work = 0;
  Bytes charged = 0;  ///< Workspace that the library allocated itself.
  void* stream = nullptr;
  void* work_area = nullptr;
};

/// The plans of the process. Thread-safe.
class Plans {
 public:
  PlanId create(int device);

  /// A copy of the plan. Nothing if the plan is unknown.
  std::optional<Plan> find(PlanId id) const;

  /// Calls `change(Plan&)`, which returns a Result, under the lock.
  template <typename Change>
  int change(PlanId id, Change change) {
    std::lock_guard lock(mutex_);
    const auto found = plans_.find(id);
    return found == plans_.end() ? static_cast<int>(kInvalidPlan) : change(found->second);
  }

  /// Removes a plan and returns it.
  std::optional<Plan> remove(PlanId id);

 private:
  mutable std::mutex mutex_;
  std::unordered_map<PlanId, Plan> plans_;
  PlanId next_ = 1;
};

/// Never destroyed: torch destroys its plans at the very end of a process.
Plans& plans();

}  // namespace plimsoll::pretend::cufft
