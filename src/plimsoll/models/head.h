#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include "plimsoll/nn/hooks/hooked.h"

namespace plimsoll::models {

/// Computes logits: a product with a weight of (vocabulary, dim), which may be the embedding's.
class HeadImpl : public torch::nn::Module {
 public:
  explicit HeadImpl(at::Tensor weight);

  at::Tensor forward(at::Tensor x);

 private:
  at::Tensor weight_;
};
TORCH_MODULE_IMPL(Head, nn::Hooked<HeadImpl>);

}  // namespace plimsoll::models
