// The seconds of training steps under FSDP2 in C++, as JSON.
//   fsdp_step llama WORLD_SIZE STEPS           Llama-3-8B's shape on the pretend GPU, one of WORLD_SIZE ranks
//   fsdp_step blocks WORLD_SIZE STEPS COUNT    COUNT modules with next to no compute on the pretend GPU, sharded and
//                                              without FSDP: the difference is the cost of FSDP
//   fsdp_step gloo STEPS CONFIGURATION         a small transformer on the CPU, one of torchrun's ranks
// bench/torch_fsdp_step.py does the same with torch's FSDP2.
#include <ATen/Functions.h>
#include <ATen/Parallel.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include "llama.h"
#include "plimsoll/distributed/device_mesh.h"
#include "plimsoll/distributed/process_group.h"
#include "plimsoll/fsdp/fully_shard.h"
#include "plimsoll/fsdp/param/materialize.h"
#include "plimsoll/nn/checkpoint/checkpoint.h"
#include "plimsoll/nn/device_scope.h"
#include "plimsoll/nn/optim/adamw.h"
#include "tracker/models.h"

namespace {

using namespace plimsoll;

std::vector<double> seconds_of(int steps, const std::function<void()>& step) {
  for (int i = 0; i < 3; ++i) step();  // The optimizer's state, the allocator's segments.
  std::vector<double> seconds;
  for (int i = 0; i < steps; ++i) {
    const auto began = std::chrono::steady_clock::now();
    step();
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
  }
  return seconds;
}

void print(const char* name, const std::vector<double>& seconds, const char* after) {
  std::cout << '"' << name << "\":[";
  for (std::size_t i = 0; i < seconds.size(); ++i) std::cout << (i == 0 ? "" : ",") << seconds[i];
  std::cout << "]" << after;
}

void llama(int world_size, int steps) {
  distributed::init_process_group({.backend = "fake", .store = {}, .rank = 0, .world_size = world_size});
  const auto mesh = distributed::DeviceMesh::init(at::kCUDA, {world_size});
  auto model = [] {
    const nn::DeviceScope meta(at::kMeta);
    return bench::Llama(bench::LlamaShape{});
  }();
  const fsdp::FullyShardOptions options{.mesh = mesh,
                                        .mp_policy = {.param_dtype = at::kBFloat16, .reduce_dtype = at::kFloat}};
  for (const auto& layer : *model->layers) fsdp::fully_shard(layer, options);
  fsdp::fully_shard(model, options);
  const at::Device gpu(at::kCUDA, 0);
  fsdp::to_empty(model, gpu);
  nn::AdamW optimizer(model->parameters(), {.implementation = nn::Implementation::kForeach});
  const auto tokens = at::empty({1, 8192}, at::TensorOptions(gpu).dtype(at::kLong));
  const auto seconds = seconds_of(steps, [&] {
    at::cross_entropy_loss(model(tokens).flatten(0, 1).to(at::kFloat), tokens.flatten()).backward();
    optimizer.step();
    optimizer.zero_grad();
  });
  std::cout << "{";
  print("steps", seconds, "}\n");
}

// A row of linear layers, each of them an FSDP module.
std::vector<double> row_of_blocks(int world_size, int steps, int count, bool shards) {
  const at::Device gpu(at::kCUDA, 0);
  nn::Sequential model;
  for (int i = 0; i < count; ++i) model->push_back(nn::Linear(16, 16));
  model->to(gpu);
  if (shards) {
    const auto mesh = distributed::DeviceMesh::init(at::kCUDA, {world_size});
    for (const auto& block : *model) fsdp::fully_shard(block.ptr(), {.mesh = mesh});
    fsdp::fully_shard(model, {.mesh = mesh});
  }
  const auto input = at::empty({4, 16}, at::TensorOptions(gpu));
  return seconds_of(steps, [&] {
    model->forward(input).sum().backward();
    for (auto& parameter : model->parameters()) parameter.mutable_grad().reset();
  });
}

void blocks(int world_size, int steps, int count) {
  distributed::init_process_group({.backend = "fake", .store = {}, .rank = 0, .world_size = world_size});
  std::cout << "{";
  print("plain", row_of_blocks(world_size, steps, count, false), ",");
  print("sharded", row_of_blocks(world_size, steps, count, true), "}\n");
}

void gloo(int steps, const std::string& configuration) {
  distributed::init_process_group({.backend = "gloo", .store = {}, .rank = {}, .world_size = {}});
  at::set_num_threads(1);
  const int world_size = distributed::get_world_size();
  models::Transformer model(models::TransformerOptions{.vocabulary = 512, .dim = 128, .heads = 4, .layers = 4});
  fsdp::FullyShardOptions options{.mesh = distributed::DeviceMesh::init(at::kCPU, {world_size})};
  if (configuration == "bf16") options.mp_policy = {.param_dtype = at::kBFloat16, .reduce_dtype = at::kFloat};
  if (configuration == "keep") options.reshard_after_forward = false;
  if (configuration == "offload") options.offload_policy = fsdp::CPUOffloadPolicy{.pin_memory = false};
  for (const auto& layer : *model->layers) fsdp::fully_shard(layer, options);
  auto root = fsdp::fully_shard(model, options);
  nn::AdamW optimizer(model->parameters(), {.implementation = nn::Implementation::kForeach});
  const auto tokens = at::arange(2 * 32).view({2, 32});
  const int micros = configuration == "no_sync" ? 2 : 1;
  const auto seconds = seconds_of(steps, [&] {
    for (int micro = 0; micro < micros; ++micro) {
      root.set_requires_gradient_sync(micro == micros - 1);
      model(tokens).square().mean().backward();
    }
    optimizer.step();
    optimizer.zero_grad();
  });
  if (distributed::get_rank() != 0) return;
  std::cout << "{";
  print("steps", seconds, "}\n");
}

}  // namespace

int main(int argc, char** argv) {
  // 180 GB hold a rank's shard of a model of 8 billion parameters and all activations. A profile of the user overrides
  // this one.
  setenv("PLIMSOLL_GPU_PROFILE", PLIMSOLL_BENCH_PROFILE, /*overwrite=*/0);
  std::cout.precision(9);
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() == 3 && words[0] == "llama") {
    llama(std::stoi(words[1]), std::stoi(words[2]));
  } else if (words.size() == 4 && words[0] == "blocks") {
    blocks(std::stoi(words[1]), std::stoi(words[2]), std::stoi(words[3]));
  } else if (words.size() == 3 && words[0] == "gloo") {
    gloo(std::stoi(words[1]), words[2]);
  } else {
    std::cerr << "usage: " << argv[0]
              << " llama WORLD_SIZE STEPS | blocks WORLD_SIZE STEPS COUNT | gloo STEPS CONFIGURATION\n";
    return 2;
  }
}
