#pragma once

#include <ATen/Functions.h>
#include <c10/core/GradMode.h>
#include <torch/nn/module.h>

#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "plimsoll/distributed/device_mesh.h"
#include "plimsoll/distributed/process_group.h"
#include "plimsoll/fsdp/fully_shard.h"
#include "plimsoll/nn/hooks/hooked.h"
#include "plimsoll/nn/modules.h"

/// A model for sharding tests: three layers, the same numbers every time, and faults on demand.
namespace small {

using namespace plimsoll;

struct Fault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct LayerImpl : torch::nn::Module {
  nn::Linear linear{nullptr};
  bool fails_in_forward = false;
  bool fails_in_backward = false;

  explicit LayerImpl(int dim) { linear = register_module("linear", nn::Linear(dim, dim)); }

  at::Tensor forward(at::Tensor x) {
    auto y = at::tanh(linear(x));
    if (fails_in_forward) throw Fault("a fault in forward");
    if (fails_in_backward) {
      y.register_hook([](const at::Tensor& gradient) -> at::Tensor {
        throw Fault("a fault in backward");
        return gradient;
      });
    }
    return x + y;
  }
};
TORCH_MODULE_IMPL(Layer, nn::Hooked<LayerImpl>);

/// Shards of its parameters differ in size between ranks, and the root itself owns the head.
struct NetImpl : torch::nn::Module {
  std::vector<Layer> layers;
  nn::Linear head{nullptr};

  explicit NetImpl(int dim = 5, int depth = 3) {
    for (int i = 0; i < depth; ++i) layers.push_back(register_module("layer" + std::to_string(i), Layer(dim)));
    head = register_module("head", nn::Linear(dim, 1));
    const at::NoGradGuard no_grad;
    std::int64_t seed = 0;
    for (auto& parameter : parameters()) {
      if (parameter.is_meta()) continue;
      const auto values = at::arange(parameter.numel()).mul(37).add(++seed * 11).remainder(101).to(at::kFloat);
      parameter.copy_(values.div(101).sub(0.5).view(parameter.sizes()));
    }
  }

  at::Tensor forward(at::Tensor x) {
    for (auto& layer : layers) x = layer(x);
    return head(x);
  }
};
TORCH_MODULE_IMPL(Net, nn::Hooked<NetImpl>);

/// A module with the given parameters.
struct HolderImpl : torch::nn::Module {
  explicit HolderImpl(const std::vector<at::Tensor>& parameters) {
    for (const auto& parameter : parameters)
      register_parameter("p" + std::to_string(this->parameters().size()), parameter);
  }
  at::Tensor forward(at::Tensor x) {
    for (const auto& parameter : parameters()) x = x + parameter.to(at::kFloat).sum();
    return x;
  }
};
TORCH_MODULE_IMPL(Holder, nn::Hooked<HolderImpl>);

/// The same on every rank unless the seed differs: then gradients equal those of an unsharded model.
inline at::Tensor batch(int seed = 0, int dim = 5, at::Device device = at::kCPU) {
  const auto values = at::arange(3 * dim).mul(53).add(seed * 29).remainder(97).to(at::kFloat);
  return values.div(97).sub(0.5).view({3, dim}).to(device);
}

inline at::Tensor loss_of(Net& net, const at::Tensor& input) { return net(input).square().sum(); }

/// All ranks, on the CPU.
inline fsdp::DeviceMesh cpu_mesh() { return distributed::DeviceMesh::init(at::kCPU, {distributed::get_world_size()}); }

/// Shards each layer, then the model. On the CPU by default.
inline fsdp::FSDPModule shard(Net& net, fsdp::FullyShardOptions options = {}) {
  if (!options.mesh) options.mesh = cpu_mesh();
  for (auto& layer : net->layers) fsdp::fully_shard(layer, options);
  return fsdp::fully_shard(net, options);
}

/// One process as a rank of a fake world: an all-gather finds this rank's shard everywhere.
class FakeWorld {
 public:
  explicit FakeWorld(int size, int rank = 0) {
    distributed::destroy_process_group();
    distributed::init_process_group({.backend = "fake", .rank = rank, .world_size = size});
  }
  ~FakeWorld() { distributed::destroy_process_group(); }
  FakeWorld(const FakeWorld&) = delete;
  FakeWorld& operator=(const FakeWorld&) = delete;

  static fsdp::DeviceMesh mesh() { return cpu_mesh(); }
};

/// This rank's part of a whole tensor.
inline at::Tensor part(const at::Tensor& whole, int size, int rank) {
  const auto rows = (whole.size(0) + size - 1) / size;
  const auto start = std::min<std::int64_t>(whole.size(0), rows * rank);
  return whole.narrow(0, start, std::min<std::int64_t>(rows, whole.size(0) - start));
}

/// Whether the parameters (or gradients) of a sharded model are this rank's parts of a whole model's, to the bit.
inline bool same_parameters(const torch::nn::Module& sharded, const torch::nn::Module& whole, int size, int rank) {
  const auto a = sharded.parameters(), b = whole.parameters();
  for (std::size_t i = 0; i < b.size(); ++i) {
    if (!at::equal(a[i].detach(), part(b[i].detach(), size, rank))) return false;
  }
  return a.size() == b.size();
}

inline bool same_gradients(const torch::nn::Module& sharded, const torch::nn::Module& whole, int size, int rank) {
  const auto a = sharded.parameters(), b = whole.parameters();
  for (std::size_t i = 0; i < b.size(); ++i) {
    if (a[i].grad().defined() != b[i].grad().defined()) return false;
    if (b[i].grad().defined() && !at::equal(a[i].grad(), part(b[i].grad(), size, rank))) return false;
  }
  return a.size() == b.size();
}

/// Plain gradient descent, for any model.
inline void step(torch::nn::Module& module, double rate = 0.1) {
  const at::NoGradGuard no_grad;
  for (auto& parameter : module.parameters()) {
    if (parameter.grad().defined()) parameter.sub_(parameter.grad(), rate);
  }
}

inline void zero_grad(torch::nn::Module& module) {
  for (auto& parameter : module.parameters()) parameter.mutable_grad() = at::Tensor();
}

}  // namespace small
