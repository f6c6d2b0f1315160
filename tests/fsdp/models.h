#pragma once

#include <ATen/Functions.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/container/modulelist.h>

#include <cmath>
#include <memory>
#include <vector>

#include "plimsoll/nn/checkpoint/checkpoint.h"
#include "plimsoll/nn/hooks/hooked.h"
#include "plimsoll/nn/modules.h"

/// The models of tests/python/programs/models/fsdp_models.py, statement by statement, so that tensors are allocated and
/// freed at the same points.
namespace plimsoll::scenarios {

/// A block of the network. `spare` is a layer that forward uses only on request.
struct ResidualImpl : torch::nn::Module {
  nn::Linear up{nullptr}, down{nullptr}, spare{nullptr};
  bool use_spare = false;

  ResidualImpl(int dim, int hidden, bool with_spare = false) {
    up = register_module("up", nn::Linear(dim, hidden));
    down = register_module("down", nn::Linear(hidden, dim));
    if (with_spare) spare = register_module("spare", nn::Linear(dim, dim));
  }

  at::Tensor forward(at::Tensor x) {
    auto h = up(x);
    h = at::relu(h);
    h = down(h);
    at::Tensor s;  // Lives to the end, like Python's variables.
    if (use_spare) {
      s = spare(x);
      h = h + s;
    }
    x = x + h;
    return x;
  }
};
TORCH_MODULE_IMPL(Residual, nn::Hooked<ResidualImpl>);

/// Runs a block, or a checkpoint of it.
template <class Hooked>
at::Tensor run_block(const std::shared_ptr<Hooked>& block, const at::Tensor& x, bool checkpointed) {
  if (!checkpointed) return block->forward(x);
  return nn::checkpoint_with(
      {.preserve_rng_state = false}, [block](const at::Tensor& input) { return block->forward(input); }, x);
}

/// Residual blocks and a head, with sizes that no number of ranks divides.
struct NetworkImpl : torch::nn::Module {
  torch::nn::ModuleList layers{nullptr};
  Residual branch{nullptr};
  nn::Linear head{nullptr};
  bool checkpointed;
  int times;

  NetworkImpl(int dim, const std::vector<int>& hidden, int outer, bool spare, bool checkpointed_, int times_ = 1)
      : checkpointed(checkpointed_), times(times_) {
    layers = register_module("layers", torch::nn::ModuleList());
    for (const int size : hidden) layers->push_back(Residual(dim, size, spare));
    if (spare) branch = register_module("branch", Residual(dim, hidden[0]));
    head = register_module("head", nn::Linear(dim, outer));
  }

  at::Tensor forward(at::Tensor x) {
    for (int i = 0; i < times; ++i) {
      for (const auto& layer : *layers) {
        x = run_block(std::dynamic_pointer_cast<nn::Hooked<ResidualImpl>>(layer), x, checkpointed);
      }
    }
    x = head(x);
    return x;
  }
};
TORCH_MODULE_IMPL(Network, nn::Hooked<NetworkImpl>);

struct AttentionImpl : torch::nn::Module {
  nn::Linear qkv{nullptr}, out{nullptr};
  int heads;

  AttentionImpl(int dim, int heads_) : heads(heads_) {
    qkv = register_module("qkv", nn::Linear(dim, 3 * dim));
    out = register_module("out", nn::Linear(dim, dim));
  }

  at::Tensor forward(at::Tensor x) {
    const auto b = x.size(0), t = x.size(1), d = x.size(2);
    auto h = qkv(x);
    h = h.view({b, t, 3, heads, d / heads}).permute({2, 0, 3, 1, 4});
    auto q = h[0];
    auto k = h[1];
    auto v = h[2];
    auto s = at::matmul(q, k.transpose(-2, -1));
    s = s / std::sqrt(static_cast<double>(d / heads));
    s = at::softmax(s, -1);
    auto y = at::matmul(s, v);
    y = y.transpose(1, 2).reshape({b, t, d});
    y = out(y);
    return y;
  }
};
TORCH_MODULE_IMPL(Attention, nn::Hooked<AttentionImpl>);

struct FeedForwardImpl : torch::nn::Module {
  nn::Linear up{nullptr}, down{nullptr};

  explicit FeedForwardImpl(int dim) {
    up = register_module("up", nn::Linear(dim, 4 * dim));
    down = register_module("down", nn::Linear(4 * dim, dim));
  }

  at::Tensor forward(at::Tensor x) {
    x = up(x);
    x = at::gelu(x);
    x = down(x);
    return x;
  }
};
TORCH_MODULE_IMPL(FeedForward, nn::Hooked<FeedForwardImpl>);

struct BlockImpl : torch::nn::Module {
  nn::LayerNorm norm1{nullptr}, norm2{nullptr};
  Attention attention{nullptr};
  FeedForward mlp{nullptr};

  BlockImpl(int dim, int heads) {
    norm1 = register_module("norm1", nn::LayerNorm(torch::nn::LayerNormOptions({dim})));
    attention = register_module("attention", Attention(dim, heads));
    norm2 = register_module("norm2", nn::LayerNorm(torch::nn::LayerNormOptions({dim})));
    mlp = register_module("mlp", FeedForward(dim));
  }

  at::Tensor forward(at::Tensor x) {
    auto h = norm1(x);
    h = attention(h);
    x = x + h;
    h = norm2(x);
    h = mlp(h);
    x = x + h;
    return x;
  }
};
TORCH_MODULE_IMPL(Block, nn::Hooked<BlockImpl>);

/// A linear layer without bias; its weight may be another module's.
struct HeadImpl : torch::nn::Module {
  at::Tensor weight;

  explicit HeadImpl(at::Tensor shared) { weight = register_parameter("weight", std::move(shared)); }
  at::Tensor forward(at::Tensor x) { return at::linear(x, weight); }
};
TORCH_MODULE_IMPL(Head, nn::Hooked<HeadImpl>);

struct GPTOptions {
  int vocabulary, context, dim, heads, layers;
  bool tied, checkpointed;
  bool headless = false;  ///< Forward ends before the head, which the caller runs.
};

struct GPTImpl : torch::nn::Module {
  nn::Embedding tokens{nullptr}, places{nullptr};
  torch::nn::ModuleList layers{nullptr};
  nn::LayerNorm norm{nullptr};
  Head head{nullptr};
  at::Tensor order;
  bool checkpointed, headless;

  explicit GPTImpl(const GPTOptions& options) : checkpointed(options.checkpointed), headless(options.headless) {
    const int dim = options.dim;
    tokens = register_module("tokens", nn::Embedding(options.vocabulary, dim));
    places = register_module("places", nn::Embedding(options.context, dim));
    layers = register_module("layers", torch::nn::ModuleList());
    for (int i = 0; i < options.layers; ++i) layers->push_back(Block(dim, options.heads));
    norm = register_module("norm", nn::LayerNorm(torch::nn::LayerNormOptions({dim})));
    head = register_module("head", Head(options.tied ? tokens->weight : at::empty({options.vocabulary, dim})));
    order = register_buffer("order", at::arange(options.context));
  }

  at::Tensor forward(at::Tensor text) {
    auto x = tokens(text);
    auto p = places(order);
    x = x + p;
    p.reset();
    for (const auto& layer : *layers) {
      x = run_block(std::dynamic_pointer_cast<nn::Hooked<BlockImpl>>(layer), x, checkpointed);
    }
    x = norm(x);
    if (!headless) x = head(x);
    return x;
  }
};
TORCH_MODULE_IMPL(GPT, nn::Hooked<GPTImpl>);

}  // namespace plimsoll::scenarios
