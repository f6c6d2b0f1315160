#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <functional>
#include <memory>

#include "plimsoll/architecture/architecture.h"
#include "plimsoll/job/job.h"
#include "plimsoll/models/layers.h"
#include "plimsoll/models/mixture_of_experts.h"
#include "plimsoll/nn/checkpoint/options.h"
#include "plimsoll/nn/hooks/hooked.h"
#include "plimsoll/nn/modules.h"

namespace plimsoll::models {

/// Attention and a feed-forward layer, each after a norm and with a residual connection.
class BlockImpl : public torch::nn::Module {
 public:
  BlockImpl(const architecture::Architecture& architecture, job::Norm norm, std::int64_t index);

  at::Tensor forward(at::Tensor x, at::Tensor turns);

 private:
  Attention attention_{nullptr};
  FeedForward feed_forward_{nullptr};  ///< Null if the block has experts.
  MixtureOfExperts experts_{nullptr};
  RMSNorm attention_norm_{nullptr}, ffn_norm_{nullptr};
};
TORCH_MODULE_IMPL(Block, nn::Hooked<BlockImpl>);

/// GPT-2's block, without dropout.
class GPT2BlockImpl : public torch::nn::Module {
 public:
  explicit GPT2BlockImpl(const architecture::Architecture& architecture);

  at::Tensor forward(at::Tensor x);

 private:
  std::int64_t heads_;
  nn::LayerNorm ln_1_{nullptr}, ln_2_{nullptr};
  nn::Linear c_attn_{nullptr}, c_proj_{nullptr}, c_fc_{nullptr}, m_proj_{nullptr};
};
TORCH_MODULE_IMPL(GPT2Block, nn::Hooked<GPT2BlockImpl>);

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
