// Trains a small transformer for a few real steps, on the CPU or on a GPU, and shows where its memory
// goes.
//
//     ninja -C build/release example_track_training && build/release/examples/example_track_training [cuda]
//     [--checkpoint]
#include <ATen/Functions.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/container/modulelist.h>

#include <cstdio>
#include <cstring>
#include <iostream>

#include "plimsoll/nn/checkpoint/checkpoint.h"
#include "plimsoll/nn/hooks/hooked.h"
#include "plimsoll/nn/modules.h"
#include "plimsoll/nn/optim/adamw.h"
#include "plimsoll/nn/optim/clip_grad_norm.h"
#include "plimsoll/tracker/mem_tracker.h"

namespace nn = plimsoll::nn;

// A usual module of libtorch. Tracking needs only Hooked<…> in its declaration.
struct AttentionImpl : torch::nn::Module {
  AttentionImpl(int dim, int heads) : heads(heads) {
    qkv = register_module("qkv", nn::Linear(dim, 3 * dim));
    out = register_module("out", nn::Linear(dim, dim));
  }
  at::Tensor forward(const at::Tensor& x) {
    const auto parts = qkv(x).view({x.size(0), x.size(1), 3, heads, -1}).permute({2, 0, 3, 1, 4}).unbind(0);
    const auto y = at::scaled_dot_product_attention(parts[0], parts[1], parts[2], {}, 0.0, /*is_causal=*/true);
    return out(y.transpose(1, 2).reshape(x.sizes()));
  }
  int heads;
  nn::Linear qkv{nullptr}, out{nullptr};
};
TORCH_MODULE_IMPL(Attention, nn::Hooked<AttentionImpl>);

struct BlockImpl : torch::nn::Module {
  BlockImpl(int dim, int heads) {
    norm1 = register_module("norm1", nn::LayerNorm(torch::nn::LayerNormOptions({dim})));
    attention = register_module("attention", Attention(dim, heads));
    norm2 = register_module("norm2", nn::LayerNorm(torch::nn::LayerNormOptions({dim})));
    up = register_module("up", nn::Linear(dim, 4 * dim));
    down = register_module("down", nn::Linear(4 * dim, dim));
  }
  at::Tensor forward(at::Tensor x) {
    x = x + attention(norm1(x));
    return x + down(at::gelu(up(norm2(x))));
  }
  nn::LayerNorm norm1{nullptr}, norm2{nullptr};
  Attention attention{nullptr};
  nn::Linear up{nullptr}, down{nullptr};
};
TORCH_MODULE_IMPL(Block, nn::Hooked<BlockImpl>);

struct TransformerImpl : torch::nn::Module {
  TransformerImpl(int vocabulary, int dim, int heads, int layers, bool checkpoint) : checkpoint(checkpoint) {
    embed = register_module("embed", nn::Embedding(vocabulary, dim));
    blocks = register_module("blocks", torch::nn::ModuleList());
    for (int i = 0; i < layers; ++i) blocks->push_back(Block(dim, heads));
    head = register_module("head", nn::Linear(dim, vocabulary));
  }
  at::Tensor forward(const at::Tensor& tokens) {
    auto x = embed(tokens);
    for (const auto& entry : *blocks) {
      const auto block = std::dynamic_pointer_cast<nn::Hooked<BlockImpl>>(entry);
      const auto run = [block](const at::Tensor& input) { return block->forward(input); };
      x = checkpoint ? nn::checkpoint(run, x) : run(x);
    }
    return head(x);
  }
  bool checkpoint;
  nn::Embedding embed{nullptr};
  torch::nn::ModuleList blocks{nullptr};
  nn::Linear head{nullptr};
};
TORCH_MODULE_IMPL(Transformer, nn::Hooked<TransformerImpl>);

int main(int argc, char** argv) {
  at::Device device(at::kCPU);
  bool checkpoint = false;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--checkpoint") == 0) {
      checkpoint = true;
    } else {
      device = at::Device(argv[i]);
    }
  }
  at::manual_seed(1);
  Transformer model(/*vocabulary=*/256, /*dim=*/128, /*heads=*/4, /*layers=*/4, checkpoint);
  model->to(device);
  nn::AdamW optimizer(model->parameters(), {.lr = 1e-3});
  // Each token is the previous token plus three.
  const auto tokens = at::arange(8 * 65).mul(3).remainder(256).view({8, 65}).to(device);

  plimsoll::MemTracker tracker;
  tracker.track_external(model, optimizer, tokens);
  {
    const auto scope = tracker.enter();
    for (int step = 0; step < 5; ++step) {
      const auto logits = model(tokens.slice(1, 0, 64));
      const auto loss = at::cross_entropy_loss(logits.flatten(0, 1), tokens.slice(1, 1).flatten());
      loss.backward();
      nn::clip_grad_norm_(model->parameters(), 1.0);
      optimizer.step();
      optimizer.zero_grad();
      std::printf("step %d: loss %.4f\n", step, loss.item<float>());
    }
  }

  using plimsoll::Layout, plimsoll::SnapshotKind, plimsoll::ByteUnit;
  std::cout << "\nAt the peak:\n";
  tracker.display_snapshot(SnapshotKind::kPeak, ByteUnit::kMiB, Layout::kTable);
  std::cout << "\nWhat was alive then, largest first:\n";
  const auto alive = tracker.alive_at_peak(device.is_cpu() ? "cpu" : "cuda:0");
  for (std::size_t i = 0; i < alive.size() && i < 5; ++i) {
    std::cout << "  " << alive[i].bytes / 1024 << " KiB  " << alive[i].category << "  " << alive[i].owner;
    if (alive[i].sizes) std::cout << "  " << at::IntArrayRef(*alive[i].sizes) << " " << at::toString(*alive[i].dtype);
    std::cout << "\n";
  }
  std::cout << "\nThe last step, module by module:\n";
  tracker.display_modulewise_snapshots({.depth = 2, .unit = ByteUnit::kMiB, .layout = Layout::kTable});
}
