#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <array>
#include <cstdint>

#include "plimsoll/architecture/architecture.h"
#include "plimsoll/models/rms_norm.h"
#include "plimsoll/nn/hooks/hooked.h"
#include "plimsoll/nn/modules.h"

namespace plimsoll::models {

/// Causal attention with rotary positions and grouped heads. wqkv_ is the one projection of Phi-3, wq_, wk_ and wv_ are
/// those of the others. Qwen3 normalises queries and keys.
class AttentionImpl : public torch::nn::Module {
 public:
  AttentionImpl(const architecture::Architecture& architecture, job::Norm norm);

  at::Tensor forward(at::Tensor x, at::Tensor turns);

 private:
  std::array<at::Tensor, 3> project(const at::Tensor& x);

  std::int64_t heads_, kv_heads_, head_dim_;
  nn::Linear wqkv_{nullptr}, wq_{nullptr}, wk_{nullptr}, wv_{nullptr}, wo_{nullptr};
  RMSNorm q_norm_{nullptr}, k_norm_{nullptr};
};
TORCH_MODULE_IMPL(Attention, nn::Hooked<AttentionImpl>);

}  // namespace plimsoll::models
