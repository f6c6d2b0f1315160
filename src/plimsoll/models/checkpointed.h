#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <functional>
#include <memory>

#include "plimsoll/job/job.h"
#include "plimsoll/nn/checkpoint/checkpoint_options.h"
#include "plimsoll/nn/hooks/hooked.h"

namespace plimsoll::models {

/// How a block runs: on what the one before it gave, with the rotary table where there is one.
using RunBlock = std::function<at::Tensor(const at::Tensor& x, const at::Tensor& turns)>;

/// A block whose activations are computed again in backward. fully_shard goes around it, as torchtitan has it.
class CheckpointedImpl : public torch::nn::Module {
 public:
  /// REQUIRES: kind is not kNone.
  CheckpointedImpl(std::shared_ptr<torch::nn::Module> block, RunBlock run, job::CheckpointKind kind);

  at::Tensor forward(at::Tensor x, at::Tensor turns);

 private:
  RunBlock run_;
  nn::CheckpointOptions options_;
};
TORCH_MODULE_IMPL(Checkpointed, nn::Hooked<CheckpointedImpl>);

}  // namespace plimsoll::models
