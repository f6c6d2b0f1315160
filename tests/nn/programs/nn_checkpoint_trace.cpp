// Trains a small transformer on the pretend GPU, with the kinds of checkpoints on standard input, one per line. Prints
// the allocator's events for each as a line of JSON, [[action, address, bytes], …]. test_nn_checkpoint.py does the same
// in Python with torch.utils.checkpoint, statement by statement: a variable here ends where Python drops it.

#include <ATen/Functions.h>
#include <ATen/autocast_mode.h>

#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "plimsoll/nn/checkpoint/checkpoint.h"
#include "plimsoll/nn/checkpoint/selective_checkpoint.h"
#include "plimsoll/nn/device_scope.h"
#include "plimsoll/nn/modules.h"
#include "programs/programs.h"

#if __has_include(<c10/cuda/impl/cuda_cmake_macros.h>)  // Only a CUDA build of torch has it.
#include <c10/cuda/CUDACachingAllocator.h>
#define PLIMSOLL_TORCH_HAS_CUDA 1
#endif

namespace nn_checkpoint_trace {

namespace {

namespace nn = plimsoll::nn;

constexpr int kBatch = 2;
constexpr int kTokens = 128;
constexpr int kDim = 256;
constexpr int kHeads = 4;
constexpr int kLayers = 3;

struct Event {
  std::string action;
  std::size_t address;
  std::size_t bytes;
};
std::vector<Event> events;

#ifdef PLIMSOLL_TORCH_HAS_CUDA
void record_events() {
  namespace allocator = c10::cuda::CUDACachingAllocator;
  allocator::init(1);
  allocator::get()->attachAllocatorTraceTracker([](const allocator::TraceEntry& entry) {
    using Action = allocator::TraceEntry::Action;
    if (entry.action_ == Action::ALLOC) events.push_back({"alloc", entry.addr_, entry.size_});
    if (entry.action_ == Action::FREE_COMPLETED) events.push_back({"free_completed", entry.addr_, entry.size_});
  });
}
#else
void record_events() { TORCH_CHECK(false, "this torch is not a CUDA build"); }
#endif

struct AttentionImpl : torch::nn::Module {
  explicit AttentionImpl(double dropout) : p(dropout), dropout(torch::nn::DropoutOptions(dropout)) {
    register_module("norm", norm);
    register_module("qkv", qkv);
    register_module("out", out);
    register_module("dropout", this->dropout);
  }
  at::Tensor forward(const at::Tensor& x) {
    at::Tensor h = norm(x);
    h = qkv(h);
    h = h.view({kBatch, kTokens, 3, kHeads, kDim / kHeads});
    h = h.permute({2, 0, 3, 1, 4});
    at::Tensor q = h[0];
    at::Tensor k = h[1];
    at::Tensor v = h[2];
    h = at::scaled_dot_product_attention(q, k, v, {}, p, /*is_causal=*/true);
    h = h.transpose(1, 2);
    h = h.reshape({kBatch, kTokens, kDim});
    h = out(h);
    h = dropout(h);
    return x + h;
  }
  double p;
  nn::LayerNorm norm{torch::nn::LayerNormOptions({kDim})};
  nn::Linear qkv{kDim, 3 * kDim};
  nn::Linear out{kDim, kDim};
  nn::Dropout dropout;
};
TORCH_MODULE_IMPL(Attention, nn::Hooked<AttentionImpl>);

struct FeedForwardImpl : torch::nn::Module {
  explicit FeedForwardImpl(double dropout) : dropout(torch::nn::DropoutOptions(dropout)) {
    register_module("norm", norm);
    register_module("up", up);
    register_module("down", down);
    register_module("dropout", this->dropout);
  }
  at::Tensor forward(const at::Tensor& x) {
    at::Tensor h = norm(x);
    h = up(h);
    h = at::gelu(h);
    h = down(h);
    h = dropout(h);
    return x + h;
  }
  nn::LayerNorm norm{torch::nn::LayerNormOptions({kDim})};
  nn::Linear up{kDim, 4 * kDim};
  nn::Linear down{4 * kDim, kDim};
  nn::Dropout dropout;
};
TORCH_MODULE_IMPL(FeedForward, nn::Hooked<FeedForwardImpl>);

struct BlockImpl : torch::nn::Module {
  BlockImpl(double dropout, bool nested) : attention(dropout), feed_forward(dropout), nested(nested) {
    register_module("attention", attention);
    register_module("feed_forward", feed_forward);
  }
  at::Tensor forward(const at::Tensor& x) {
    if (nested) {
      at::Tensor h = nn::checkpoint(attention, x);
      return nn::checkpoint(feed_forward, h);
    }
    at::Tensor h = attention(x);
    return feed_forward(h);
  }
  Attention attention;
  FeedForward feed_forward;
  bool nested;
};
TORCH_MODULE_IMPL(Block, nn::Hooked<BlockImpl>);

// Keeps attention and every second matrix product.
nn::CheckpointContexts every_second_product() {
  const auto products = std::make_shared<int>(0);
  const auto attention =
      nn::save_operators({"aten::_scaled_dot_product_flash_attention", "aten::_scaled_dot_product_efficient_attention",
                          "aten::_scaled_dot_product_cudnn_attention"});
  const auto product = nn::save_operators({"aten::mm", "aten::addmm"});
  return nn::create_selective_checkpoint_contexts([=](const c10::OperatorHandle& op, bool is_recompute) {
    if (product(op, is_recompute) == nn::CheckpointPolicy::kMustSave && (*products)++ % 2 == 0) {
      return nn::CheckpointPolicy::kMustSave;
    }
    return attention(op, is_recompute);
  });
}

class Autocast {
 public:
  Autocast() {
    at::autocast::set_autocast_enabled(at::kCUDA, true);
    at::autocast::set_autocast_dtype(at::kCUDA, at::kBFloat16);
    at::autocast::increment_nesting();
  }
  ~Autocast() {
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(at::kCUDA, false);
  }
};

void train(const std::string& kind) {
  const auto is = [&](const std::string& word) { return kind.find(word) != std::string::npos; };
  nn::CheckpointOptions options;
  options.early_stop = !is("whole");
  if (is("products")) options.policy = nn::save_operators({"aten::addmm", "aten::mm"});
  if (is("second")) options.context_fn = every_second_product;

  const nn::DeviceScope scope(at::kCUDA);
  std::vector<Block> blocks;
  for (int i = 0; i < kLayers; ++i) blocks.emplace_back(is("dropout") ? 0.1 : 0.0, is("nested"));
  const auto step = [&] {
    at::Tensor x = at::randn({kBatch, kTokens, kDim});
    {
      std::optional<Autocast> autocast;
      if (is("autocast")) autocast.emplace();
      for (auto& block : blocks) x = is("none") ? block(x) : nn::checkpoint_with(options, block, x);
    }
    const at::Tensor loss = x.sum();
    x = at::Tensor();
    if (is("retained")) loss.backward({}, /*retain_graph=*/true);
    loss.backward();
  };
  for (int i = 0; i < 2; ++i) step();
}

}  // namespace

int run_program(int, char**) {
  record_events();
  for (std::string kind; std::getline(std::cin, kind);) {
    events.clear();
    train(kind);
    std::cout << "[";
    for (std::size_t i = 0; i < events.size(); ++i) {
      std::cout << (i == 0 ? "" : ", ") << "[\"" << events[i].action << "\", " << events[i].address << ", "
                << events[i].bytes << "]";
    }
    std::cout << "]" << std::endl;
  }
  return 0;
}

const programs::Program program("nn_checkpoint_trace", &run_program);

}  // namespace nn_checkpoint_trace
