#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <functional>
#include <memory>

#include "plimsoll/job/job.h"
#include "plimsoll/nn/checkpoint/options.h"
#include "plimsoll/nn/hooks/hooked.h"

namespace plimsoll::models {

/// Runs a block on the output of the previous one, with the rotary table if the model has one.
using RunBlock = std::function<at::Tensor(const at::Tensor& x, const at::Tensor& turns)>;

/// A block with activation checkpointing. As in torchtitan, fully_shard is applied to this wrapper.
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
