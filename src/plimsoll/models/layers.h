#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <array>
#include <cstdint>

#include "plimsoll/architecture/architecture.h"
#include "plimsoll/job/job.h"
#include "plimsoll/nn/hooks/hooked.h"
#include "plimsoll/nn/modules.h"

/// The layers of the models. Rotary positions: pairs of a head's elements are complex numbers, rotated by an angle that
/// depends on the position.
namespace plimsoll::models {

inline nn::Linear linear(std::int64_t in, std::int64_t out, bool bias) {
  return nn::Linear(torch::nn::LinearOptions(in, out).bias(bias));
}

inline nn::LayerNorm layer_norm(const architecture::Architecture& a) {
  return nn::LayerNorm(torch::nn::LayerNormOptions({a.dim}).eps(a.norm_epsilon));
}

/// RMS norm over the last dimension: torch's own operator, or several operators in fp32, as in torchtitan's first
/// models.
class RMSNormImpl : public torch::nn::Module {
 public:
  RMSNormImpl(std::int64_t dim, double epsilon, job::Norm kind);

  at::Tensor forward(at::Tensor x);

  at::Tensor weight;

 private:
  double epsilon_;
  job::Norm kind_;
};
TORCH_MODULE_IMPL(RMSNorm, nn::Hooked<RMSNormImpl>);

/// On the CPU: one unit complex number for each position and pair.
at::Tensor rotations(std::int64_t head_dim, std::int64_t positions, double theta);

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

/// SwiGLU: w2(silu(w1 x) * w3 x). w13_ is w1 and w3 in one matrix (Phi-3).
class FeedForwardImpl : public torch::nn::Module {
 public:
  explicit FeedForwardImpl(const architecture::Architecture& architecture);

  at::Tensor forward(at::Tensor x);

 private:
  nn::Linear w13_{nullptr}, w1_{nullptr}, w2_{nullptr}, w3_{nullptr};
};
TORCH_MODULE_IMPL(FeedForward, nn::Hooked<FeedForwardImpl>);

/// Computes logits: a product with a weight of (vocabulary, dim), which may be the embedding's.
class HeadImpl : public torch::nn::Module {
 public:
  explicit HeadImpl(at::Tensor weight);

  at::Tensor forward(at::Tensor x);

 private:
  at::Tensor weight_;
};
TORCH_MODULE_IMPL(Head, nn::Hooked<HeadImpl>);

}  // namespace plimsoll::models
