#pragma once

#include <ATen/core/Tensor.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "plimsoll/fsdp/memory_use.h"

/// How the runtime tells of itself. Where nobody observes, it costs one relaxed load a call.
namespace plimsoll::fsdp {

class FSDPParamGroup;
class FSDPState;

/// Where a state, or in backward a group of its parameters, is in a pass.
enum class Stage : std::uint8_t {
  kBeforePreForward,
  kAfterPreForward,
  kBeforePostForward,
  kAfterPostForward,
  kBeforePreBackward,
  kAfterPreBackward,
  kBeforePostBackward,
  kAfterPostBackward,
  kUnshardByHand,  ///< FSDPModule::unshard begins.
};
inline constexpr std::size_t kStages = static_cast<std::size_t>(Stage::kUnshardByHand) + 1;

/// Called on the thread that does the work: the caller's in forward, autograd's in backward; observers in the order of
/// their coming. An After comes only where the stage did not end by an exception. Observers change nothing, call
/// nothing of the runtime, and do not throw.
class RuntimeObserver {
 public:
  /// One of the forward stages; also where a checkpoint runs the forward again.
  virtual void on_stage(Stage stage, const FSDPState& state) noexcept = 0;
  /// One of the others. Pre-backward comes once for each of the module's outputs, and does nothing but once.
  virtual void on_stage(Stage stage, const FSDPParamGroup& group) noexcept = 0;
  /// What the tensor's memory is used for from now on, where that changes or was not known when it was allocated.
  virtual void on_memory(MemoryUse use, const at::Tensor& tensor, const FSDPParamGroup* group) noexcept = 0;

 protected:
  ~RuntimeObserver() = default;
};

/// An observer's time of observing. When it ends, no call to the observer is under way. Thread-safe.
class RuntimeObservation {
 public:
  explicit RuntimeObservation(RuntimeObserver& observer);
  ~RuntimeObservation();
  RuntimeObservation(const RuntimeObservation&) = delete;
  RuntimeObservation& operator=(const RuntimeObservation&) = delete;

 private:
  RuntimeObserver& observer_;
};

// --- For the runtime.

namespace detail {
extern std::atomic<int> runtime_observers;
void tell_stage(Stage stage, const FSDPState& state);
void tell_stage(Stage stage, const FSDPParamGroup& group);
void tell_memory(MemoryUse use, const at::Tensor& tensor);
}  // namespace detail

inline bool is_observed() { return detail::runtime_observers.load(std::memory_order_relaxed) != 0; }
inline void tell(Stage stage, const FSDPState& state) {
  if (is_observed()) detail::tell_stage(stage, state);
}
inline void tell(Stage stage, const FSDPParamGroup& group) {
  if (is_observed()) detail::tell_stage(stage, group);
}
/// Of the GroupScope's group. Undefined tensors are nobody's.
inline void tell(MemoryUse use, const at::Tensor& tensor) {
  if (is_observed()) detail::tell_memory(use, tensor);
}

}  // namespace plimsoll::fsdp
