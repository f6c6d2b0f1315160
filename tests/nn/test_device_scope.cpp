#include <ATen/Functions.h>
#include <doctest/doctest.h>
#include <torch/nn/init.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/transformerlayer.h>

#include <thread>

#include "plimsoll/nn/device_scope.h"
#include "plimsoll/nn/modules.h"

namespace nn = plimsoll::nn;

TEST_CASE("all kinds of tensors made without a device are on the scope's device") {
  const nn::DeviceScope scope(at::kMeta);
  CHECK(at::empty({2}).is_meta());
  CHECK(at::zeros({2}).is_meta());
  CHECK(at::ones({2}, at::kBFloat16).is_meta());
  CHECK(at::full({2}, 1.5).is_meta());
  CHECK(at::arange(4).is_meta());
  CHECK(at::randn({2}).is_meta());
  CHECK(at::randint(4, {2}).is_meta());
  CHECK(at::empty_strided({2, 2}, {1, 2}).is_meta());
  CHECK(at::scalar_tensor(1).is_meta());
  CHECK(at::eye(3).is_meta());
}

TEST_CASE("an explicit device and the device of an argument override the scope") {
  const at::Tensor cpu = at::ones({2});
  const nn::DeviceScope scope(at::kMeta);
  CHECK(at::empty({2}, at::kCPU).is_cpu());
  CHECK(at::zeros_like(cpu).is_cpu());
  CHECK(cpu.new_zeros({3}).is_cpu());
  CHECK((cpu + 1).is_cpu());
  CHECK(cpu.to(at::kDouble).is_cpu());
}

TEST_CASE("tensors inside an operator ignore the scope") {
  const at::Tensor cpu = at::arange(6);
  const nn::DeviceScope scope(at::kMeta);
  CHECK(std::get<0>(at::unique_consecutive(cpu)).is_cpu());
  CHECK(at::cartesian_prod({cpu, cpu}).is_cpu());
}

TEST_CASE("of nested scopes the innermost counts, and the end of one restores the outer") {
  CHECK_FALSE(nn::DeviceScope::current());
  {
    const nn::DeviceScope outer(at::kMeta);
    {
      const nn::DeviceScope inner(at::kCPU);
      CHECK(at::empty({1}).is_cpu());
      CHECK(nn::DeviceScope::current() == at::Device(at::kCPU));
    }
    CHECK(at::empty({1}).is_meta());
    CHECK(nn::DeviceScope::current() == at::Device(at::kMeta));
  }
  CHECK(at::empty({1}).is_cpu());
}

TEST_CASE("a scope affects only its own thread") {
  const nn::DeviceScope scope(at::kMeta);
  bool on_cpu = false;
  std::thread([&] { on_cpu = at::empty({1}).is_cpu(); }).join();
  CHECK(on_cpu);
}

TEST_CASE("an exception ends the scope") {
  CHECK_THROWS([] {
    const nn::DeviceScope scope(at::kMeta);
    at::empty({-1});
  }());
  CHECK(at::empty({1}).is_cpu());
}

TEST_CASE("torch's modules of any size can be built and initialised on meta") {
  const nn::DeviceScope scope(at::kMeta);
  torch::nn::Linear linear(16384, 53248);
  torch::nn::Embedding embedding(128256, 16384);
  torch::nn::Conv2d convolution(torch::nn::Conv2dOptions(4096, 4096, 7));
  torch::nn::TransformerEncoderLayer layer(torch::nn::TransformerEncoderLayerOptions(16384, 64));
  torch::nn::init::kaiming_normal_(linear->weight);
  torch::nn::init::xavier_uniform_(linear->weight);
  torch::nn::init::normal_(embedding->weight);
  for (const auto& parameter : linear->parameters()) CHECK(parameter.is_meta());
  for (const auto& parameter : embedding->parameters()) CHECK(parameter.is_meta());
  for (const auto& parameter : convolution->parameters()) CHECK(parameter.is_meta());
  for (const auto& parameter : layer->parameters()) CHECK(parameter.is_meta());
  CHECK(linear->weight.requires_grad());
  CHECK(linear->weight.is_leaf());
}

TEST_CASE("modules are built, trained and initialised on the pretend GPU") {
  if (!at::globalContext().hasCUDA()) return;
  at::Tensor loss;
  nn::Linear linear = nullptr;
  {
    const nn::DeviceScope scope(at::kCUDA);
    linear = nn::Linear(512, 1024);
    torch::nn::init::kaiming_normal_(linear->weight);
    nn::Embedding embedding(1000, 512);
    loss = linear(embedding(at::zeros({4, 16}, at::kLong))).sum();
    loss.backward();
  }
  CHECK(linear->weight.device() == at::Device(at::kCUDA, 0));
  CHECK(linear->weight.grad().device() == at::Device(at::kCUDA, 0));
}
