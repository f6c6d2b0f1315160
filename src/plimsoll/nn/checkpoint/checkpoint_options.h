#pragma once

#include <c10/util/Exception.h>

#include <functional>
#include <memory>

#include "plimsoll/nn/checkpoint/checkpoint_policy.h"

namespace plimsoll::nn {

/// Opens a scope: something that stays in force until what is returned is destroyed, on the same thread.
using ScopeFunction = std::function<std::shared_ptr<void>()>;

/// The scopes around a checkpointed function, in its first run and in recomputation. Either may be empty.
struct CheckpointContexts {
  ScopeFunction forward;
  ScopeFunction recompute;
};

struct CheckpointOptions {
  /// Recomputation draws the random numbers of the first run: on the CPU, and on the devices of the tensor arguments.
  bool preserve_rng_state = true;
  /// Recomputation stops as soon as all that backward needs is there.
  bool early_stop = true;
  /// Recomputed tensors are checked to have the shape, dtype and device of the first run.
  bool determinism_check = true;
  /// Called once for each checkpoint.
  std::function<CheckpointContexts()> context_fn = nullptr;
  /// Selective checkpointing: what to keep instead of recomputing it (selective_checkpoint.h). Not together with
  /// context_fn.
  CheckpointPolicyFunction policy = nullptr;
};

/// Recomputation did not do what the first run did.
class CheckpointError : public c10::Error {
 public:
  using c10::Error::Error;
};

}  // namespace plimsoll::nn
