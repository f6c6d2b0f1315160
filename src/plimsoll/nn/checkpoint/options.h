#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/util/Exception.h>

#include <cstdint>
#include <functional>
#include <memory>

namespace plimsoll::nn {

/// Opens a scope, which ends when the returned object is destroyed, on the same thread.
using ScopeFunction = std::function<std::shared_ptr<void>()>;

/// The scopes around a checkpointed function, in its first run and in recomputation. Either may be empty.
struct CheckpointContexts {
  ScopeFunction forward;
  ScopeFunction recompute;
};

/// The fate of an operator's results in selective checkpointing. In eager mode, Must and Prefer mean the same.
enum class CheckpointPolicy : std::uint8_t {
  kMustSave,         ///< Kept from forward; backward does not run the operator again.
  kPreferSave,       ///< As kMustSave.
  kMustRecompute,    ///< Dropped after forward; backward runs the operator again.
  kPreferRecompute,  ///< As kMustRecompute.
};

/// Decides for each operator call of the forward pass. Recomputation follows the decision of forward and, as in torch
/// 2.13, does not call this: `is_recompute` is always false.
using CheckpointPolicyFunction = std::function<CheckpointPolicy(const c10::OperatorHandle& op, bool is_recompute)>;

struct CheckpointOptions {
  /// Recomputation draws the random numbers of the first run: on the CPU, and on the devices of the tensor arguments.
  bool preserve_rng_state = true;
  /// Recomputation stops as soon as backward has all needed tensors.
  bool early_stop = true;
  /// Checks that recomputed tensors have the shape, dtype and device of the first run.
  bool determinism_check = true;
  /// Called once for each checkpoint.
  std::function<CheckpointContexts()> context_fn = nullptr;
  /// Selective checkpointing: which results to keep (selective_checkpoint.h). Excludes context_fn.
  CheckpointPolicyFunction policy = nullptr;
};

/// The recomputation differs from the first run.
class CheckpointError : public c10::Error {
 public:
  using c10::Error::Error;
};

}  // namespace plimsoll::nn
