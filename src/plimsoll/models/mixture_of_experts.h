#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <tuple>

#include "plimsoll/architecture/architecture.h"
#include "plimsoll/nn/hooks/hooked.h"
#include "plimsoll/nn/modules.h"

/// Feed-forward layers of which each token uses some. No token is dropped or padded for, so the sizes of all tensors,
/// and the memory, do not depend on the routing.
namespace plimsoll::models {

/// Chooses experts and their weights for each token.
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

/// The products of all experts, in one call for each weight.
class GroupedExpertsImpl : public torch::nn::Module {
 public:
  GroupedExpertsImpl(std::int64_t dim, const architecture::Experts& experts);

  /// `x` is sorted by expert; `rows` is the number of rows of each.
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
