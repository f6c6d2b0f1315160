#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <tuple>

#include "plimsoll/architecture/architecture.h"
#include "plimsoll/nn/hooks/hooked.h"
#include "plimsoll/nn/modules.h"

/// Feed-forward layers of which each token uses some. No token is dropped and none is padded for, so that the sizes of
/// all tensors are the same however the tokens are routed: what a router decides never changes memory here.
namespace plimsoll::models {

/// Which experts each token is sent to, and how much each counts.
class RouterImpl : public torch::nn::Module {
 public:
  RouterImpl(std::int64_t dim, const architecture::Experts& experts);

  /// (tokens, dim) → weights and experts of (tokens, per_token).
  std::tuple<at::Tensor, at::Tensor> forward(at::Tensor x);

 private:
  nn::Linear gate_{nullptr};
  std::int64_t per_token_;
};
TORCH_MODULE_IMPL(Router, nn::Hooked<RouterImpl>);

/// All experts' products in one call each.
class GroupedExpertsImpl : public torch::nn::Module {
 public:
  GroupedExpertsImpl(std::int64_t dim, const architecture::Experts& experts);

  /// `x` sorted by expert; `rows` of each.
  at::Tensor forward(at::Tensor x, at::Tensor rows);

 private:
  at::Tensor w1_, w2_, w3_;
};
TORCH_MODULE_IMPL(GroupedExperts, nn::Hooked<GroupedExpertsImpl>);

class MixtureOfExpertsImpl : public torch::nn::Module {
 public:
  MixtureOfExpertsImpl(std::int64_t dim, const architecture::Experts& experts);

  at::Tensor forward(at::Tensor x);

 private:
  Router router_{nullptr};
  GroupedExperts experts_{nullptr};
  std::int64_t count_, per_token_;
};
TORCH_MODULE_IMPL(MixtureOfExperts, nn::Hooked<MixtureOfExpertsImpl>);

}  // namespace plimsoll::models
