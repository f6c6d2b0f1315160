#pragma once

#include <ATen/Functions.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fsdp/cuda/gpu_world.h"
#include "plimsoll/fsdp/fully_shard.h"
#include "plimsoll/nn/modules.h"
#include "plimsoll/nn/optim/adamw.h"
#include "plimsoll/tracker/fsdp_mem_tracker.h"
#include "tracker/cuda/counted.h"

/// A model with memory in multiples of one number: layers with one square weight and no bias, sharded one by one, as
/// rank 0 of a world on the pretend GPU.
namespace plimsoll::row {

inline constexpr std::int64_t kDim = 256;
inline constexpr std::int64_t kNumel = kDim * kDim;
inline constexpr std::int64_t kWhole = kNumel * 4;  ///< A weight in fp32.
inline constexpr int kWorld = 8;
inline constexpr std::int64_t kShard = kWhole / kWorld;

struct Row {
  nn::Sequential model;
  std::vector<std::shared_ptr<torch::nn::Module>> layers;

  explicit Row(int count, const fsdp::FullyShardOptions& options = {}, at::ScalarType stored = at::kFloat) {
    for (int i = 0; i < count; ++i) model->push_back(nn::Linear(torch::nn::LinearOptions(kDim, kDim).bias(false)));
    model->to(at::Device(at::kCUDA, 0), stored);
    layers = model->children();
    for (const auto& layer : layers) fsdp::fully_shard(layer, options);
    fsdp::fully_shard(model, options);
  }

  at::Tensor loss(const at::Tensor& input) { return model->forward(input).sum(); }
  static std::string name(std::size_t layer) { return "Sequential." + std::to_string(layer); }
};

inline at::Tensor input(at::ScalarType dtype = at::kFloat) {
  return at::ones({4, kDim}, at::TensorOptions(at::Device(at::kCUDA, 0)).dtype(dtype));
}

/// The only snapshot of that state, on the GPU.
inline DeviceSnapshot at_state(FSDPMemTracker& tracker, std::size_t layer, FSDPModState state) {
  const auto stats = tracker.fsdp_module_stats(Row::name(layer));
  REQUIRE(stats.snapshots.at(state).size() == 1);
  return stats.snapshots.at(state)[0].at(kGpu);
}

}  // namespace plimsoll::row
