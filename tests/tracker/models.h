#pragma once

#include <ATen/Functions.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/container/modulelist.h>

#include <cmath>
#include <string>

#include "plimsoll/nn/checkpoint/checkpoint.h"
#include "plimsoll/nn/hooks/hooked.h"
#include "plimsoll/nn/modules.h"

/// The models of tests/python/programs/tracker_scenarios.py, statement by statement: tensors have equal lifetimes.

namespace plimsoll::models {

struct MLPImpl : torch::nn::Module {
  nn::Linear fc1{nullptr}, fc2{nullptr};
  nn::ReLU act{nullptr};

  MLPImpl(int in, int hidden, int out) {
    fc1 = register_module("fc1", nn::Linear(in, hidden));
    act = register_module("act", nn::ReLU());
    fc2 = register_module("fc2", nn::Linear(hidden, out));
  }

  at::Tensor forward(at::Tensor x) {
    x = fc1(x);
    x = act(x);
    x = fc2(x);
    return x;
  }
};
TORCH_MODULE_IMPL(MLP, nn::Hooked<MLPImpl>);

struct TwiceImpl : torch::nn::Module {
  nn::Linear shared{nullptr}, last{nullptr};

  explicit TwiceImpl(int dim) {
    shared = register_module("shared", nn::Linear(dim, dim));
    last = register_module("last", nn::Linear(dim, dim));
  }

  at::Tensor forward(at::Tensor x) {
    x = shared(x);
    x = at::relu(x);
    x = shared(x);
    x = last(x);
    return x;
  }
};
TORCH_MODULE_IMPL(Twice, nn::Hooked<TwiceImpl>);

struct ConvNetImpl : torch::nn::Module {
  nn::Conv2d conv{nullptr};
  nn::BatchNorm2d norm{nullptr};
  nn::ReLU act{nullptr};
  nn::AdaptiveAvgPool2d pool{nullptr};
  nn::Linear head{nullptr};

  ConvNetImpl() {
    conv = register_module("conv", nn::Conv2d(torch::nn::Conv2dOptions(3, 24, 3).padding(1)));
    norm = register_module("norm", nn::BatchNorm2d(24));
    act = register_module("act", nn::ReLU());
    pool = register_module("pool", nn::AdaptiveAvgPool2d(2));
    head = register_module("head", nn::Linear(96, 10));
  }

  at::Tensor forward(at::Tensor x) {
    x = conv(x);
    x = norm(x);
    x = act(x);
    x = pool(x);
    x = at::flatten(x, 1);
    x = head(x);
    return x;
  }
};
TORCH_MODULE_IMPL(ConvNet, nn::Hooked<ConvNetImpl>);

struct AttentionImpl : torch::nn::Module {
  nn::Linear wq{nullptr}, wk{nullptr}, wv{nullptr}, wo{nullptr};
  int heads;

  AttentionImpl(int dim, int heads_) : heads(heads_) {
    wq = register_module("wq", nn::Linear(dim, dim));
    wk = register_module("wk", nn::Linear(dim, dim));
    wv = register_module("wv", nn::Linear(dim, dim));
    wo = register_module("wo", nn::Linear(dim, dim));
  }

  at::Tensor forward(at::Tensor x) {
    const auto b = x.size(0), t = x.size(1), d = x.size(2);
    auto q = wq(x);
    q = q.view({b, t, heads, d / heads}).transpose(1, 2);
    auto k = wk(x);
    k = k.view({b, t, heads, d / heads}).transpose(1, 2);
    auto v = wv(x);
    v = v.view({b, t, heads, d / heads}).transpose(1, 2);
    auto s = at::matmul(q, k.transpose(-2, -1));
    s = s / std::sqrt(static_cast<double>(d / heads));
    s = at::softmax(s, -1);
    auto y = at::matmul(s, v);
    y = y.transpose(1, 2).reshape({b, t, d});
    y = wo(y);
    return y;
  }
};
TORCH_MODULE_IMPL(Attention, nn::Hooked<AttentionImpl>);

struct BlockImpl : torch::nn::Module {
  nn::LayerNorm ln1{nullptr}, ln2{nullptr};
  Attention attn{nullptr};
  MLP mlp{nullptr};

  BlockImpl(int dim, int heads) {
    ln1 = register_module("ln1", nn::LayerNorm(torch::nn::LayerNormOptions({dim})));
    attn = register_module("attn", Attention(dim, heads));
    ln2 = register_module("ln2", nn::LayerNorm(torch::nn::LayerNormOptions({dim})));
    mlp = register_module("mlp", MLP(dim, 4 * dim, dim));
  }

  at::Tensor forward(at::Tensor x) {
    auto h = ln1(x);
    h = attn(h);
    x = x + h;
    h = ln2(x);
    h = mlp(h);
    x = x + h;
    return x;
  }
};
TORCH_MODULE_IMPL(Block, nn::Hooked<BlockImpl>);

/// A linear layer without bias. It may share the weight of another module.
struct HeadImpl : torch::nn::Module {
  at::Tensor weight;

  explicit HeadImpl(at::Tensor shared) { weight = register_parameter("weight", std::move(shared)); }
  at::Tensor forward(const at::Tensor& x) { return at::linear(x, weight); }
};
TORCH_MODULE_IMPL(Head, nn::Hooked<HeadImpl>);

struct TransformerOptions {
  int vocabulary = 120;
  int dim = 48;
  int heads = 4;
  int layers = 3;
  bool checkpoint = false;
  bool tied = false;
};

struct TransformerImpl : torch::nn::Module {
  nn::Embedding embed{nullptr};
  torch::nn::ModuleList layers{nullptr};
  nn::LayerNorm norm{nullptr};
  Head head{nullptr};
  TransformerOptions options;

  explicit TransformerImpl(const TransformerOptions& options_) : options(options_) {
    embed = register_module("embed", nn::Embedding(options.vocabulary, options.dim));
    layers = register_module("layers", torch::nn::ModuleList());
    for (int i = 0; i < options.layers; ++i) layers->push_back(Block(options.dim, options.heads));
    norm = register_module("norm", nn::LayerNorm(torch::nn::LayerNormOptions({options.dim})));
    head = register_module("head", Head(options.tied ? embed->weight : at::rand({options.vocabulary, options.dim})));
  }

  at::Tensor forward(at::Tensor tokens) {
    auto x = embed(tokens);
    for (const auto& layer : *layers) {
      auto block = std::dynamic_pointer_cast<nn::Hooked<BlockImpl>>(layer);
      if (options.checkpoint) {
        x = nn::checkpoint_with(
            {.preserve_rng_state = false}, [block](const at::Tensor& input) { return block->forward(input); }, x);
      } else {
        x = block->forward(x);
      }
    }
    x = norm(x);
    x = head(x);
    return x;
  }
};
TORCH_MODULE_IMPL(Transformer, nn::Hooked<TransformerImpl>);

}  // namespace plimsoll::models
