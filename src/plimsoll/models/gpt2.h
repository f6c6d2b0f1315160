#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <cstdint>

#include "plimsoll/architecture/architecture.h"
#include "plimsoll/nn/hooks/hooked.h"
#include "plimsoll/nn/modules.h"

namespace plimsoll::models {

nn::LayerNorm layer_norm(const architecture::Architecture& architecture);

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

}  // namespace plimsoll::models
