#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>  // Flatten
#include <torch/nn/modules/normalization.h>
#include <torch/nn/modules/pooling.h>
#include <torch/nn/options/linear.h>

#include <cstdint>
#include <ostream>

#include "plimsoll/nn/hooks/hooked.h"

/// torch's layers with forward hooks, otherwise as in torch::nn; but Linear computes as in Python.
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

TORCH_MODULE_IMPL(Linear, Hooked<LinearImpl>);
TORCH_MODULE_IMPL(LayerNorm, Hooked<torch::nn::LayerNormImpl>);
TORCH_MODULE_IMPL(Conv2d, Hooked<torch::nn::Conv2dImpl>);
TORCH_MODULE_IMPL(BatchNorm2d, Hooked<torch::nn::BatchNorm2dImpl>);
TORCH_MODULE_IMPL(ReLU, Hooked<torch::nn::ReLUImpl>);
TORCH_MODULE_IMPL(GELU, Hooked<torch::nn::GELUImpl>);
TORCH_MODULE_IMPL(SiLU, Hooked<torch::nn::SiLUImpl>);
TORCH_MODULE_IMPL(Dropout, Hooked<torch::nn::DropoutImpl>);
TORCH_MODULE_IMPL(Flatten, Hooked<torch::nn::FlattenImpl>);
TORCH_MODULE_IMPL(MaxPool2d, Hooked<torch::nn::MaxPool2dImpl>);
TORCH_MODULE_IMPL(AdaptiveAvgPool2d, Hooked<torch::nn::AdaptiveAvgPool2dImpl>);
TORCH_MODULE_IMPL(Embedding, Hooked<torch::nn::EmbeddingImpl>);

/// Takes one tensor and returns one; see Hooked<torch::nn::SequentialImpl>.
class Sequential : public torch::nn::ModuleHolder<Hooked<torch::nn::SequentialImpl>> {
 public:
  using Impl = Hooked<torch::nn::SequentialImpl>;
  using torch::nn::ModuleHolder<Impl>::ModuleHolder;

  Sequential() = default;
  /// `Sequential({{"first", First()}, {"second", Second()}})`
  Sequential(std::initializer_list<torch::nn::NamedAnyModule> modules)
      : ModuleHolder(std::make_shared<Impl>(modules)) {}
};

}  // namespace plimsoll::nn
