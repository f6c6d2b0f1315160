#include "plimsoll/nn/modules.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <torch/nn/init.h>

#include <cmath>

namespace plimsoll::nn {

LinearImpl::LinearImpl(const torch::nn::LinearOptions& options) : options(options) { LinearImpl::reset(); }

void LinearImpl::reset() {
  weight = register_parameter("weight", at::empty({options.out_features(), options.in_features()}));
  bias = options.bias() ? register_parameter("bias", at::empty(options.out_features()))
                        : register_parameter("bias", at::Tensor(), /*requires_grad=*/false);
  reset_parameters();
}

void LinearImpl::reset_parameters() {
  torch::nn::init::kaiming_uniform_(weight, std::sqrt(5.0));
  if (!bias.defined()) return;
  const double bound = 1.0 / std::sqrt(static_cast<double>(options.in_features()));
  torch::nn::init::uniform_(bias, -bound, bound);
}

void LinearImpl::pretty_print(std::ostream& stream) const {
  stream << "plimsoll::nn::Linear(in_features=" << options.in_features() << ", out_features=" << options.out_features()
         << ", bias=" << (options.bias() ? "true" : "false") << ")";
}

at::Tensor LinearImpl::forward(const at::Tensor& input) { return at::linear(input, weight, bias); }

}  // namespace plimsoll::nn
