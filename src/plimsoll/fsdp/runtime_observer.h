#pragma once

#include <ATen/core/Tensor.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

/// Notifications of the runtime, and its reason for each allocation. Without observers, each costs one relaxed load.
namespace plimsoll::fsdp {

class FSDPParamGroup;
class FSDPState;

/// The reason of the runtime for an allocation, known at the instant of the allocation.
enum class MemoryUse : std::uint8_t {
  kShardedParam,
  kUnshardedParam,
  kAllGatherInput,    ///< Shards that are cast or copied to the device before the all-gather.
  kAllGatherOutput,   ///< Also the copy-in: it is a part of the same buffer.
  kAllGatherCopyOut,  ///< Gathered shards before they are joined.
  kPostForwardShard,
  kUnshardedGrad,
  kAccumulatedGrad,  ///< An unsharded gradient that is not reduced yet.
  kReduceScatterInput,
  kReduceScatterOutput,
  kAllReduce,
  kPartialGrad,  ///< Reduced within a replica; a later backward all-reduces it.
  kShardedGrad,
};
inline constexpr std::size_t kMemoryUses = static_cast<std::size_t>(MemoryUse::kShardedGrad) + 1;

/// The group that this thread works for, until the end of the scope. Scopes nest.
class GroupScope {
 public:
  explicit GroupScope(const FSDPParamGroup& group);
  ~GroupScope();
  GroupScope(const GroupScope&) = delete;
  GroupScope& operator=(const GroupScope&) = delete;

  /// Null outside all scopes.
  static const FSDPParamGroup* current();

 private:
  const FSDPParamGroup* outer_;
};

/// The use of memory that this thread allocates on the group's device, until the end of the scope. Scopes nest.
class MemoryScope {
 public:
  explicit MemoryScope(MemoryUse use);
  ~MemoryScope();
  MemoryScope(const MemoryScope&) = delete;
  MemoryScope& operator=(const MemoryScope&) = delete;

  /// Null outside all scopes.
  static const MemoryUse* current();

 private:
  MemoryUse use_;
  const MemoryUse* outer_;
};

/// The position of a state, or in backward of a parameter group, in a pass.
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

/// Called on the thread that does the work: the caller's in forward, autograd's in backward. Observers are called in
/// the order in which they were added. An After stage is reported only if the stage did not throw. Observers must not
/// change anything, call the runtime, or throw.
class RuntimeObserver {
 public:
  /// One of the forward stages; also if a checkpoint recomputes the forward.
  virtual void on_stage(Stage stage, const FSDPState& state) noexcept = 0;
  /// One of the other stages. Pre-backward is reported once for each output of the module; only the first has an
  /// effect.
  virtual void on_stage(Stage stage, const FSDPParamGroup& group) noexcept = 0;
  /// Reports the tensor's use from now on, if the use changes or was unknown at the allocation.
  virtual void on_memory(MemoryUse use, const at::Tensor& tensor, const FSDPParamGroup* group) noexcept = 0;

 protected:
  ~RuntimeObserver() = default;
};

/// Registers an observer for its lifetime. After destruction, no call to the observer is running. Thread-safe.
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
void notify_stage(Stage stage, const FSDPState& state);
void notify_stage(Stage stage, const FSDPParamGroup& group);
void notify_memory(MemoryUse use, const at::Tensor& tensor);
}  // namespace detail

inline bool is_observed() { return detail::runtime_observers.load(std::memory_order_relaxed) != 0; }
inline void notify(Stage stage, const FSDPState& state) {
  if (is_observed()) detail::notify_stage(stage, state);
}
inline void notify(Stage stage, const FSDPParamGroup& group) {
  if (is_observed()) detail::notify_stage(stage, group);
}
/// With the GroupScope's group. Ignores undefined tensors.
inline void notify(MemoryUse use, const at::Tensor& tensor) {
  if (is_observed()) detail::notify_memory(use, tensor);
}

}  // namespace plimsoll::fsdp
