#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <cstdint>

#include "plimsoll/job/job.h"
#include "plimsoll/nn/hooks/hooked.h"

namespace plimsoll::models {

/// RMS norm over the last dimension: torch's own operator, or several operators in fp32, as in torchtitan's first
/// models.
class RMSNormImpl : public torch::nn::Module {
 public:
  RMSNormImpl(std::int64_t dim, double epsilon, job::Norm kind);

  at::Tensor forward(at::Tensor x);

  at::Tensor weight;

 private:
  double epsilon_;
  job::Norm kind_;
};
TORCH_MODULE_IMPL(RMSNorm, nn::Hooked<RMSNormImpl>);

}  // namespace plimsoll::models
