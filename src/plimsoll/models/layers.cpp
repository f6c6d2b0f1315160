#include "plimsoll/models/layers.h"

#include <ATen/Functions.h>

#include <tuple>
#include <utility>
#include <vector>

#include "plimsoll/nn/device_scope.h"

namespace plimsoll::models {
namespace {

at::Tensor as_pairs(const at::Tensor& x) {
  std::vector<std::int64_t> sizes(x.sizes().begin(), x.sizes().end() - 1);
  sizes.insert(sizes.end(), {-1, 2});
  return at::view_as_complex(x.to(at::kFloat).reshape(sizes));
}

/// Queries and keys of (batch, length, heads, head_dim), rotated in fp32 by the first `length` rows of `turns`.
std::pair<at::Tensor, at::Tensor> rotate(const at::Tensor& q, const at::Tensor& k, const at::Tensor& turns) {
  const auto q_pairs = as_pairs(q);
  const auto k_pairs = as_pairs(k);
  const auto length = q_pairs.size(1);
  const auto by = turns.slice(0, 0, length).view({1, length, 1, q_pairs.size(-1)});
  const auto q_turned = at::view_as_real(q_pairs * by).flatten(3);
  const auto k_turned = at::view_as_real(k_pairs * by).flatten(3);
  auto new_q = q_turned.to(q.scalar_type());
  auto new_k = k_turned.to(k.scalar_type());
  return {std::move(new_q), std::move(new_k)};
}

/// Each head of keys or values, repeated for `times` heads of queries.
at::Tensor repeat_heads(const at::Tensor& x, std::int64_t times) {
  if (times == 1) return x;
  const auto batch = x.size(0), length = x.size(1), heads = x.size(2), head_dim = x.size(3);
  return x.unsqueeze(3).expand({batch, length, heads, times, head_dim}).reshape({batch, length, -1, head_dim});
}

}  // namespace

RMSNormImpl::RMSNormImpl(std::int64_t dim, double epsilon, job::Norm kind) : epsilon_(epsilon), kind_(kind) {
  weight = register_parameter("weight", at::ones({dim}));
}

at::Tensor RMSNormImpl::forward(at::Tensor x) {
  if (kind_ == job::Norm::kFused) return at::rms_norm(x, weight.sizes(), weight, epsilon_);
  auto y = x.to(at::kFloat);
  auto scale = y.pow(2);
  scale = scale.mean(-1, /*keepdim=*/true);
  scale = scale + epsilon_;
  scale = at::rsqrt(scale);
  y = y * scale;
  scale.reset();
  y = y.to(x.scalar_type());
  y = y * weight;
  return y;
}

at::Tensor rotations(std::int64_t head_dim, std::int64_t positions, double theta) {
  const nn::DeviceScope cpu(at::kCPU);  // polar does not support meta.
  const auto single = at::TensorOptions(at::kFloat);
  const auto exponents = at::arange(0, head_dim, 2, single) / static_cast<double>(head_dim);
  const auto speeds = at::reciprocal(at::pow(theta, exponents));
  const auto angles = at::outer(at::arange(positions, single), speeds);
  return at::polar(at::ones_like(angles), angles);
}

AttentionImpl::AttentionImpl(const architecture::Architecture& a, job::Norm norm)
    : heads_(a.heads), kv_heads_(a.kv_heads), head_dim_(a.head_dim) {
  const auto queries = heads_ * head_dim_, keys = kv_heads_ * head_dim_;
  if (a.family == architecture::Family::kPhi3) {
    wqkv_ = register_module("wqkv", linear(a.dim, queries + 2 * keys, a.qkv_bias));
  } else {
    wq_ = register_module("wq", linear(a.dim, queries, a.qkv_bias));
    wk_ = register_module("wk", linear(a.dim, keys, a.qkv_bias));
    wv_ = register_module("wv", linear(a.dim, keys, a.qkv_bias));
  }
  wo_ = register_module("wo", linear(queries, a.dim, a.output_bias));
  if (a.qk_norm) {
    q_norm_ = register_module("q_norm", RMSNorm(head_dim_, a.norm_epsilon, norm));
    k_norm_ = register_module("k_norm", RMSNorm(head_dim_, a.norm_epsilon, norm));
  }
}

std::array<at::Tensor, 3> AttentionImpl::project(const at::Tensor& x) {
  if (wqkv_.is_empty()) {
    auto q = wq_(x);
    auto k = wk_(x);
    auto v = wv_(x);
    return {std::move(q), std::move(k), std::move(v)};
  }
  const auto keys = kv_heads_ * head_dim_;
  auto parts = wqkv_(x).split_with_sizes({heads_ * head_dim_, keys, keys}, -1);
  return {std::move(parts[0]), std::move(parts[1]), std::move(parts[2])};
}

at::Tensor AttentionImpl::forward(at::Tensor x, at::Tensor turns) {
  const auto batch = x.size(0), length = x.size(1);
  auto [q, k, v] = project(x);
  q = q.view({batch, length, heads_, head_dim_});
  k = k.view({batch, length, kv_heads_, head_dim_});
  v = v.view({batch, length, kv_heads_, head_dim_});
  if (!q_norm_.is_empty()) {
    q = q_norm_(q);
    k = k_norm_(k);
  }
  std::tie(q, k) = rotate(q, k, turns);
  const auto times = heads_ / kv_heads_;
  // Separate statements: C++ does not define the order of arguments, and it decides the order of backward.
  auto every_k = repeat_heads(k, times);
  auto every_v = repeat_heads(v, times);
  k = std::move(every_k);
  v = std::move(every_v);
  const auto q_heads = q.transpose(1, 2);
  const auto k_heads = k.transpose(1, 2);
  const auto v_heads = v.transpose(1, 2);
  const auto out = at::scaled_dot_product_attention(q_heads, k_heads, v_heads, /*attn_mask=*/{}, /*dropout_p=*/0.0,
                                                    /*is_causal=*/true);
  return wo_(out.transpose(1, 2).contiguous().view({batch, length, -1}));
}

FeedForwardImpl::FeedForwardImpl(const architecture::Architecture& a) {
  const bool fused = a.family == architecture::Family::kPhi3;
  if (fused) {
    w13_ = register_module("w13", linear(a.dim, 2 * a.hidden, a.mlp_bias));
  } else {
    w1_ = register_module("w1", linear(a.dim, a.hidden, a.mlp_bias));
  }
  w2_ = register_module("w2", linear(a.hidden, a.dim, a.mlp_bias));
  if (!fused) w3_ = register_module("w3", linear(a.dim, a.hidden, a.mlp_bias));
}

at::Tensor FeedForwardImpl::forward(at::Tensor x) {
  if (!w13_.is_empty()) {
    const auto parts = w13_(x).chunk(2, -1);
    auto h = at::silu(parts[0]);
    h = h * parts[1];
    return w2_(h);
  }
  auto h = w1_(x);
  h = at::silu(h);
  {
    const auto up = w3_(x);
    h = h * up;
  }
  return w2_(h);
}

HeadImpl::HeadImpl(at::Tensor weight) { weight_ = register_parameter("weight", std::move(weight)); }

at::Tensor HeadImpl::forward(at::Tensor x) { return at::linear(x, weight_); }

}  // namespace plimsoll::models
