// Trains a transformer under FSDP2 as one of many ranks, on the pretend GPU, and shows where the memory of that rank
// goes: by block, by stage, and by cause at the peak.
//
//     ninja -C build/release example_track_fsdp && build/release/examples/example_track_fsdp [WORLD_SIZE] [--keep]
//
// --keep leaves the blocks' parameters unsharded between forward and backward (reshard_after_forward = false).
#include <ATen/Functions.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/container/modulelist.h>

#include <charconv>
#include <iostream>
#include <string_view>

#include "plimsoll/distributed/device_mesh.h"
#include "plimsoll/distributed/process_group.h"
#include "plimsoll/fsdp/fully_shard.h"
#include "plimsoll/fsdp/param/materialize.h"
#include "plimsoll/nn/device_scope.h"
#include "plimsoll/nn/hooks/hooked.h"
#include "plimsoll/nn/modules.h"
#include "plimsoll/nn/optim/adamw.h"
#include "plimsoll/tracker/fsdp_mem_tracker.h"

namespace distributed = plimsoll::distributed;
namespace fsdp = plimsoll::fsdp;
namespace nn = plimsoll::nn;

struct BlockImpl : torch::nn::Module {
  BlockImpl(int dim, int heads) : heads(heads) {
    norm1 = register_module("norm1", nn::LayerNorm(torch::nn::LayerNormOptions({dim})));
    qkv = register_module("qkv", nn::Linear(dim, 3 * dim));
    out = register_module("out", nn::Linear(dim, dim));
    norm2 = register_module("norm2", nn::LayerNorm(torch::nn::LayerNormOptions({dim})));
    up = register_module("up", nn::Linear(dim, 4 * dim));
    down = register_module("down", nn::Linear(4 * dim, dim));
  }
  at::Tensor forward(at::Tensor x) {
    const auto parts = qkv(norm1(x)).view({x.size(0), x.size(1), 3, heads, -1}).permute({2, 0, 3, 1, 4}).unbind(0);
    const auto y = at::scaled_dot_product_attention(parts[0], parts[1], parts[2], {}, 0.0, /*is_causal=*/true);
    x = x + out(y.transpose(1, 2).reshape(x.sizes()));
    return x + down(at::gelu(up(norm2(x))));
  }
  int heads;
  nn::LayerNorm norm1{nullptr}, norm2{nullptr};
  nn::Linear qkv{nullptr}, out{nullptr}, up{nullptr}, down{nullptr};
};
TORCH_MODULE_IMPL(Block, nn::Hooked<BlockImpl>);

struct TransformerImpl : torch::nn::Module {
  TransformerImpl(int vocabulary, int dim, int heads, int layers) {
    embed = register_module("embed", nn::Embedding(vocabulary, dim));
    blocks = register_module("blocks", torch::nn::ModuleList());
    for (int i = 0; i < layers; ++i) blocks->push_back(Block(dim, heads));
    head = register_module("head", nn::Linear(dim, vocabulary));
  }
  at::Tensor forward(const at::Tensor& tokens) {
    auto x = embed(tokens);
    for (const auto& block : *blocks) x = std::dynamic_pointer_cast<nn::Hooked<BlockImpl>>(block)->forward(x);
    return head(x.flatten(0, 1));
  }
  nn::Embedding embed{nullptr};
  torch::nn::ModuleList blocks{nullptr};
  nn::Linear head{nullptr};
};
TORCH_MODULE_IMPL(Transformer, nn::Hooked<TransformerImpl>);

int main(int argc, char** argv) {
  int world_size = 64;
  bool keep = false;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const auto* end = word.data() + word.size();
    if (word == "--keep") {
      keep = true;
    } else if (std::from_chars(word.data(), end, world_size).ptr != end || world_size < 1) {
      std::cerr << "usage: " << argv[0] << " [WORLD_SIZE] [--keep]\n";
      return 2;
    }
  }
  if (!at::hasCUDA()) {
    std::cerr << "this example needs the pretend GPU, and torch is not a CUDA build\n";
    return 1;
  }

  // One process plays rank 0, and the other ranks do not exist: memory is as in the real job, numbers are not.
  distributed::init_process_group({.backend = "fake", .store = {}, .rank = 0, .world_size = world_size});
  auto model = [] {
    const nn::DeviceScope meta(at::kMeta);
    return Transformer(/*vocabulary=*/50304, /*dim=*/4096, /*heads=*/32, /*layers=*/8);
  }();
  const fsdp::FullyShardOptions options{.mesh = distributed::DeviceMesh::init(at::kCUDA, {world_size}),
                                        .mp_policy = {.param_dtype = at::kBFloat16, .reduce_dtype = at::kFloat}};
  auto of_blocks = options;
  if (keep) of_blocks.reshard_after_forward = false;
  for (const auto& block : *model->blocks) fsdp::fully_shard(block, of_blocks);
  fsdp::fully_shard(model, options);
  const at::Device gpu(at::kCUDA, 0);
  fsdp::to_empty(model, gpu);
  nn::AdamW optimizer(model->parameters(), {.lr = 1e-4});
  const auto tokens = at::zeros({1, 2049}, at::TensorOptions(gpu).dtype(at::kLong));

  plimsoll::FSDPMemTracker tracker(model, optimizer);
  tracker.track_inputs(tokens);
  {
    const auto scope = tracker.enter();
    for (int step = 0; step < 2; ++step) {
      const auto logits = model(tokens.slice(1, 0, 2048));
      at::cross_entropy_loss(logits, tokens.slice(1, 1).flatten()).backward();
      optimizer.step();
      optimizer.zero_grad();
    }
  }

  using plimsoll::Layout, plimsoll::ByteUnit;
  std::cout << "The last step, stage by stage, of one block:\n";
  std::cout << plimsoll::render({tracker.fsdp_module_stats("Transformer.blocks.3")},
                                {.depth = 3, .unit = ByteUnit::kMiB, .layout = Layout::kTable});
  std::cout << "Why the memory stood as high as it did:\n" << tracker.explain();
  std::cout << "\nAnd in the step that made the optimizer's state:\n" << *tracker.explain_first_state();
  const auto books = tracker.device_books("cuda:0");
  std::cout << "\nactive at most " << plimsoll::format_bytes(books.active.peak) << ", reserved at most "
            << plimsoll::format_bytes(books.reserved.peak) << ", outside of torch "
            << plimsoll::format_bytes(books.outside) << "\n";
}
