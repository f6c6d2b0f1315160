#pragma once

#include <ATen/Functions.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/container/modulelist.h>

#include <memory>
#include <string>

#include "plimsoll/nn/hooks/hooked.h"
#include "plimsoll/nn/modules.h"

/// A model of Llama's shape with hooks on each layer.

namespace plimsoll::bench {

struct LlamaShape {
  std::int64_t layers = 32, dim = 4096, hidden = 14336, vocabulary = 128256, heads = 32, kv_heads = 8;
};

inline nn::Linear linear(std::int64_t in, std::int64_t out) {
  return nn::Linear(torch::nn::LinearOptions(in, out).bias(false));
}

struct RMSNormImpl : torch::nn::Module {
  at::Tensor weight;
  explicit RMSNormImpl(std::int64_t dim) { weight = register_parameter("weight", at::empty({dim})); }
  at::Tensor forward(const at::Tensor& x) { return at::rms_norm(x, weight.sizes(), weight); }
};
TORCH_MODULE_IMPL(RMSNorm, nn::Hooked<RMSNormImpl>);

struct AttentionImpl : torch::nn::Module {
  nn::Linear wq{nullptr}, wk{nullptr}, wv{nullptr}, wo{nullptr};
  LlamaShape shape;

  explicit AttentionImpl(const LlamaShape& s) : shape(s) {
    const auto head = s.dim / s.heads;
    wq = register_module("wq", linear(s.dim, s.dim));
    wk = register_module("wk", linear(s.dim, s.kv_heads * head));
    wv = register_module("wv", linear(s.dim, s.kv_heads * head));
    wo = register_module("wo", linear(s.dim, s.dim));
  }
  at::Tensor forward(const at::Tensor& x) {
    const auto split = [&](const at::Tensor& y) {
      return y.view({x.size(0), x.size(1), -1, shape.dim / shape.heads}).transpose(1, 2);
    };
    const auto groups = shape.heads / shape.kv_heads;
    const auto q = split(wq(x));
    const auto k = split(wk(x)).repeat_interleave(groups, 1);
    const auto v = split(wv(x)).repeat_interleave(groups, 1);
    const auto y = at::scaled_dot_product_attention(q, k, v, {}, 0.0, /*is_causal=*/true);
    return wo(y.transpose(1, 2).reshape(x.sizes()));
  }
};
TORCH_MODULE_IMPL(Attention, nn::Hooked<AttentionImpl>);

struct FeedForwardImpl : torch::nn::Module {
  nn::Linear w1{nullptr}, w2{nullptr}, w3{nullptr};
  explicit FeedForwardImpl(const LlamaShape& s) {
    w1 = register_module("w1", linear(s.dim, s.hidden));
    w2 = register_module("w2", linear(s.hidden, s.dim));
    w3 = register_module("w3", linear(s.dim, s.hidden));
  }
  at::Tensor forward(const at::Tensor& x) { return w2(at::silu(w1(x)) * w3(x)); }
};
TORCH_MODULE_IMPL(FeedForward, nn::Hooked<FeedForwardImpl>);

struct LlamaBlockImpl : torch::nn::Module {
  RMSNorm attention_norm{nullptr}, ffn_norm{nullptr};
  Attention attention{nullptr};
  FeedForward feed_forward{nullptr};
  explicit LlamaBlockImpl(const LlamaShape& s) {
    attention_norm = register_module("attention_norm", RMSNorm(s.dim));
    attention = register_module("attention", Attention(s));
    ffn_norm = register_module("ffn_norm", RMSNorm(s.dim));
    feed_forward = register_module("feed_forward", FeedForward(s));
  }
  at::Tensor forward(const at::Tensor& x) {
    const auto h = x + attention(attention_norm(x));
    return h + feed_forward(ffn_norm(h));
  }
};
TORCH_MODULE_IMPL(LlamaBlock, nn::Hooked<LlamaBlockImpl>);

struct LlamaImpl : torch::nn::Module {
  nn::Embedding tok_embeddings{nullptr};
  torch::nn::ModuleList layers{nullptr};
  RMSNorm norm{nullptr};
  nn::Linear output{nullptr};
  explicit LlamaImpl(const LlamaShape& s) {
    tok_embeddings = register_module("tok_embeddings", nn::Embedding(s.vocabulary, s.dim));
    layers = register_module("layers", torch::nn::ModuleList());
    for (std::int64_t i = 0; i < s.layers; ++i) layers->push_back(LlamaBlock(s));
    norm = register_module("norm", RMSNorm(s.dim));
    output = register_module("output", linear(s.dim, s.vocabulary));
  }
  at::Tensor forward(const at::Tensor& tokens) {
    auto x = tok_embeddings(tokens);
    for (const auto& layer : *layers) x = std::static_pointer_cast<nn::Hooked<LlamaBlockImpl>>(layer)->forward(x);
    return output(norm(x));
  }
};
TORCH_MODULE_IMPL(Llama, nn::Hooked<LlamaImpl>);

}  // namespace plimsoll::bench
