#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "plimsoll/base/bytes.h"
#include "plimsoll/pretend/cufft/abi.h"

namespace plimsoll::pretend::cufft {

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
