#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include "plimsoll/architecture/architecture.h"
#include "plimsoll/nn/hooks/hooked.h"
#include "plimsoll/nn/modules.h"

namespace plimsoll::models {

/// SwiGLU: w2(silu(w1 x) * w3 x). w13_ is w1 and w3 in one matrix (Phi-3).
class FeedForwardImpl : public torch::nn::Module {
 public:
  explicit FeedForwardImpl(const architecture::Architecture& architecture);

  at::Tensor forward(at::Tensor x);

 private:
  nn::Linear w13_{nullptr}, w1_{nullptr}, w2_{nullptr}, w3_{nullptr};
};
TORCH_MODULE_IMPL(FeedForward, nn::Hooked<FeedForwardImpl>);

}  // namespace plimsoll::models
