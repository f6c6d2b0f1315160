#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <cstdint>

#include "plimsoll/architecture/architecture.h"
#include "plimsoll/models/attention.h"
#include "plimsoll/models/feed_forward.h"
#include "plimsoll/models/mixture_of_experts.h"
#include "plimsoll/models/rms_norm.h"
#include "plimsoll/nn/hooks/hooked.h"

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

}  // namespace plimsoll::models
