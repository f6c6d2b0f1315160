#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/options/linear.h>

#include <cstdint>
#include <ostream>

namespace plimsoll::nn {

/// torch.nn.Linear as in Python: one call of aten::linear. For inputs of more than two dimensions, libtorch's own layer
/// multiplies and then adds the bias with a second operator; so its memory, its autocast and the last bits of its
/// gradients differ from Python's. Options, names and initial values are those of torch::nn::Linear.
class LinearImpl : public torch::nn::Cloneable<LinearImpl> {
 public:
  LinearImpl(std::int64_t in_features, std::int64_t out_features)
      : LinearImpl(torch::nn::LinearOptions(in_features, out_features)) {}
  explicit LinearImpl(const torch::nn::LinearOptions& options);

  void reset() override;
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;

  at::Tensor forward(const at::Tensor& input);

  torch::nn::LinearOptions options;
  at::Tensor weight;
  at::Tensor bias;  ///< Undefined if the layer has no bias.
};

}  // namespace plimsoll::nn
