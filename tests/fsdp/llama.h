#pragma once

#include <ATen/Functions.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/container/modulelist.h>

#include <cstdint>
#include <memory>

#include "plimsoll/nn/checkpoint/checkpoint.h"
#include "plimsoll/nn/device_scope.h"
#include "plimsoll/nn/hooks/hooked.h"
#include "plimsoll/nn/modules.h"

/// The model of tests/python/programs/models/fsdp_llama.py, statement by statement, so that tensors are allocated and
/// freed at the same points.
namespace plimsoll::scenarios {

inline nn::Linear without_bias(int in, int out) { return nn::Linear(torch::nn::LinearOptions(in, out).bias(false)); }

/// Computes in fp32 for any input dtype, operator by operator.
struct RMSNormImpl : torch::nn::Module {
  at::Tensor weight;

  explicit RMSNormImpl(int dim) { weight = register_parameter("weight", at::empty({dim})); }

  at::Tensor forward(at::Tensor x) {
    auto y = x.to(at::kFloat);
    auto s = y.pow(2);
    s = s.mean(-1, /*keepdim=*/true);
    s = s + 1e-5;
    s = at::rsqrt(s);
    y = y * s;
    y = y.to(x.scalar_type());
    y = y * weight;
    return y;
  }
};
TORCH_MODULE_IMPL(RMSNorm, nn::Hooked<RMSNormImpl>);

/// One complex number for each position and pair of a head's elements.
inline at::Tensor rotations(int context, int head_dim) {
  const nn::DeviceScope cpu(at::kCPU);  // polar does not support meta.
  const auto speeds = at::reciprocal(at::pow(10000.0, at::arange(0, head_dim, 2).to(at::kFloat) / head_dim));
  const auto angles = at::outer(at::arange(context).to(at::kFloat), speeds);
  return at::polar(at::ones_like(angles), angles);
}

inline at::Tensor rotate(const at::Tensor& x, const at::Tensor& freqs) {
  const auto b = x.size(0), t = x.size(1), heads = x.size(2), d = x.size(3);
  auto c = x.to(at::kFloat);
  c = at::view_as_complex(c.view({b, t, heads, d / 2, 2}));
  c = c * freqs.view({1, t, 1, d / 2});
  c = at::view_as_real(c).flatten(3);
  c = c.to(x.scalar_type());
  return c;
}

/// Each head of keys or values, repeated for `times` heads of queries.
inline at::Tensor repeated(const at::Tensor& x, int times) {
  const auto b = x.size(0), t = x.size(1), heads = x.size(2), d = x.size(3);
  return x.unsqueeze(3).expand({b, t, heads, times, d}).reshape({b, t, heads * times, d});
}

struct GroupedAttentionImpl : torch::nn::Module {
  nn::Linear wq{nullptr}, wk{nullptr}, wv{nullptr}, wo{nullptr};
  int heads, kv_heads;

  GroupedAttentionImpl(int dim, int heads_, int kv_heads_) : heads(heads_), kv_heads(kv_heads_) {
    wq = register_module("wq", without_bias(dim, dim));
    wk = register_module("wk", without_bias(dim, dim / heads * kv_heads));
    wv = register_module("wv", without_bias(dim, dim / heads * kv_heads));
    wo = register_module("wo", without_bias(dim, dim));
  }

  at::Tensor forward(at::Tensor x, at::Tensor freqs) {
    const auto b = x.size(0), t = x.size(1), d = x.size(2);
    auto q = wq(x);
    auto k = wk(x);
    auto v = wv(x);
    q = q.view({b, t, heads, d / heads});
    k = k.view({b, t, kv_heads, d / heads});
    v = v.view({b, t, kv_heads, d / heads});
    q = rotate(q, freqs);
    k = rotate(k, freqs);
    k = repeated(k, heads / kv_heads);
    v = repeated(v, heads / kv_heads);
    q = q.transpose(1, 2);
    k = k.transpose(1, 2);
    v = v.transpose(1, 2);
    auto y = at::scaled_dot_product_attention(q, k, v, /*attn_mask=*/{}, /*dropout_p=*/0.0, /*is_causal=*/true);
    y = y.transpose(1, 2).reshape({b, t, d});
    y = wo(y);
    return y;
  }
};
TORCH_MODULE_IMPL(GroupedAttention, nn::Hooked<GroupedAttentionImpl>);

struct SwiGLUImpl : torch::nn::Module {
  nn::Linear w1{nullptr}, w2{nullptr}, w3{nullptr};

  SwiGLUImpl(int dim, int hidden) {
    w1 = register_module("w1", without_bias(dim, hidden));
    w2 = register_module("w2", without_bias(hidden, dim));
    w3 = register_module("w3", without_bias(dim, hidden));
  }

  at::Tensor forward(at::Tensor x) {
    auto h = w1(x);
    h = at::silu(h);
    auto g = w3(x);
    h = h * g;
    h = w2(h);
    return h;
  }
};
TORCH_MODULE_IMPL(SwiGLU, nn::Hooked<SwiGLUImpl>);

struct LlamaOptions {
  int vocabulary, context, dim, hidden, heads, kv_heads, layers;
  bool checkpointed;
};

struct LlamaBlockImpl : torch::nn::Module {
  RMSNorm attention_norm{nullptr}, ffn_norm{nullptr};
  GroupedAttention attention{nullptr};
  SwiGLU feed_forward{nullptr};

  explicit LlamaBlockImpl(const LlamaOptions& options) {
    attention_norm = register_module("attention_norm", RMSNorm(options.dim));
    attention = register_module("attention", GroupedAttention(options.dim, options.heads, options.kv_heads));
    ffn_norm = register_module("ffn_norm", RMSNorm(options.dim));
    feed_forward = register_module("feed_forward", SwiGLU(options.dim, options.hidden));
  }

  at::Tensor forward(at::Tensor x, at::Tensor freqs) {
    auto h = attention_norm(x);
    h = attention(h, freqs);
    x = x + h;
    h = ffn_norm(x);
    h = feed_forward(h);
    x = x + h;
    return x;
  }
};
TORCH_MODULE_IMPL(LlamaBlock, nn::Hooked<LlamaBlockImpl>);

struct LlamaImpl : torch::nn::Module {
  nn::Embedding tokens{nullptr};
  torch::nn::ModuleList layers{nullptr};
  RMSNorm norm{nullptr};
  nn::Linear head{nullptr};
  at::Tensor freqs;
  bool checkpointed;

  explicit LlamaImpl(const LlamaOptions& options) : checkpointed(options.checkpointed) {
    tokens = register_module("tokens", nn::Embedding(options.vocabulary, options.dim));
    layers = register_module("layers", torch::nn::ModuleList());
    for (int i = 0; i < options.layers; ++i) layers->push_back(LlamaBlock(options));
    norm = register_module("norm", RMSNorm(options.dim));
    head = register_module("head", without_bias(options.dim, options.vocabulary));
    freqs = register_buffer("freqs", rotations(options.context, options.dim / options.heads));
  }

  at::Tensor forward(at::Tensor text) {
    auto x = tokens(text);
    for (const auto& layer : *layers) {
      const auto block = std::dynamic_pointer_cast<nn::Hooked<LlamaBlockImpl>>(layer);
      if (checkpointed) {
        x = nn::checkpoint_with(
            {.preserve_rng_state = false},
            [block](const at::Tensor& input, const at::Tensor& turns) { return block->forward(input, turns); }, x,
            freqs);
      } else {
        x = block->forward(x, freqs);
      }
    }
    x = norm(x);
    x = head(x);
    return x;
  }
};
TORCH_MODULE_IMPL(Llama, nn::Hooked<LlamaImpl>);

}  // namespace plimsoll::scenarios
