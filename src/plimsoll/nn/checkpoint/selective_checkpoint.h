#pragma once

#include <string>
#include <vector>

#include "plimsoll/nn/checkpoint/options.h"

/// Selective checkpointing: a policy decides for each operator call to keep or to recompute its results. The semantics
/// are those of create_selective_checkpoint_contexts (torch/utils/checkpoint.py, torch 2.13):
///
///     auto y = checkpoint_with({.policy = save_operators({"aten::mm"})}, block, x);
///
/// The policy sees calls below autograd, as they reach the backends: `aten::mm` and `aten::addmm`, not `aten::linear`.
/// All results of a kept call are kept, even if backward does not use them. The n-th call of an operator in
/// recomputation gets the results of its n-th call in forward, each once: a second backward pass through a retained
/// graph is an error. A kept call of a random operator draws no numbers in recomputation, so later random numbers
/// differ: keep all random operators or none.
namespace plimsoll::nn {

struct SelectiveCheckpointOptions {
  /// If false, an in-place change of a kept tensor is an error.
  bool allow_cache_entry_mutation = false;
};

/// The scopes of one checkpoint, which share the kept results; for CheckpointOptions::context_fn.
CheckpointContexts create_selective_checkpoint_contexts(CheckpointPolicyFunction policy,
                                                        SelectiveCheckpointOptions options = {});

/// A policy that keeps the results of the named operators ("aten::mm", "aten::add.Tensor") and recomputes all others.
/// Throws if torch does not know a name.
CheckpointPolicyFunction save_operators(const std::vector<std::string>& names);

}  // namespace plimsoll::nn
