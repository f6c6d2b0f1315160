#pragma once

#include <string>
#include <vector>

#include "plimsoll/nn/checkpoint/checkpoint_options.h"
#include "plimsoll/nn/checkpoint/checkpoint_policy.h"

/// Selective checkpointing: a policy says operator by operator what is kept and what is recomputed. The semantics are
/// those of create_selective_checkpoint_contexts (torch/utils/checkpoint.py, torch 2.13):
///
///     auto y = checkpoint_with({.policy = save_operators({"aten::mm"})}, block, x);
///
/// The policy is asked for what reaches the backends, below autograd: `aten::mm` and `aten::addmm`, not `aten::linear`.
/// All results of a kept call are kept, used by backward or not. Recomputation gets the results of the n-th call of an
/// operator for its n-th call, each once: a second backward pass through a retained graph is an error. A kept call of
/// an operator that draws random numbers does not draw them in recomputation, so those drawn after it differ; keep all
/// of them or none.
namespace plimsoll::nn {

struct SelectiveCheckpointOptions {
  /// Without it a kept tensor that was changed in place since is an error.
  bool allow_cache_entry_mutation = false;
};

/// The scopes of one checkpoint, sharing what is kept; for CheckpointOptions::context_fn.
CheckpointContexts create_selective_checkpoint_contexts(CheckpointPolicyFunction policy,
                                                        SelectiveCheckpointOptions options = {});

/// The policy that keeps the results of the named operators ("aten::mm", "aten::add.Tensor") and recomputes all others.
/// Throws on a name that torch does not know.
CheckpointPolicyFunction save_operators(const std::vector<std::string>& names);

}  // namespace plimsoll::nn
