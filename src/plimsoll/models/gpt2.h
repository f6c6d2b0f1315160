#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <cstdint>

#include "plimsoll/architecture/architecture.h"
#include "plimsoll/nn/hooked.h"
#include "plimsoll/nn/modules.h"

/// GPT-2's layers, without dropout.
namespace plimsoll::models {

nn::LayerNorm layer_norm(const architecture::Architecture& architecture);

class GPT2AttentionImpl : public torch::nn::Module {
 public:
  explicit GPT2AttentionImpl(const architecture::Architecture& architecture);

  at::Tensor forward(at::Tensor x);

 private:
  std::int64_t heads_;
  nn::Linear c_attn_{nullptr}, c_proj_{nullptr};
};
TORCH_MODULE_IMPL(GPT2Attention, nn::Hooked<GPT2AttentionImpl>);

class GPT2FeedForwardImpl : public torch::nn::Module {
 public:
  explicit GPT2FeedForwardImpl(const architecture::Architecture& architecture);

  at::Tensor forward(at::Tensor x);

 private:
  nn::Linear c_fc_{nullptr}, c_proj_{nullptr};
};
TORCH_MODULE_IMPL(GPT2FeedForward, nn::Hooked<GPT2FeedForwardImpl>);

class GPT2BlockImpl : public torch::nn::Module {
 public:
  explicit GPT2BlockImpl(const architecture::Architecture& architecture);

  at::Tensor forward(at::Tensor x);

 private:
  nn::LayerNorm ln_1_{nullptr}, ln_2_{nullptr};
  GPT2Attention attn_{nullptr};
  GPT2FeedForward mlp_{nullptr};
};
TORCH_MODULE_IMPL(GPT2Block, nn::Hooked<GPT2BlockImpl>);

}  // namespace plimsoll::models
