#include "plimsoll/models/attention.h"

#include <ATen/Functions.h>

#include <tuple>
#include <utility>

#include "plimsoll/models/linear.h"
#include "plimsoll/models/rotary.h"

namespace plimsoll::models {
namespace {

/// Each head of keys or values, repeated for `times` heads of queries.
at::Tensor repeat_heads(const at::Tensor& x, std::int64_t times) {
  if (times == 1) return x;
  const auto batch = x.size(0), length = x.size(1), heads = x.size(2), head_dim = x.size(3);
  return x.unsqueeze(3).expand({batch, length, heads, times, head_dim}).reshape({batch, length, -1, head_dim});
}

}  // namespace

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

}  // namespace plimsoll::models
