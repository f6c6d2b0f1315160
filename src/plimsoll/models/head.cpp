#include "plimsoll/models/head.h"

#include <ATen/Functions.h>

#include <utility>

namespace plimsoll::models {

HeadImpl::HeadImpl(at::Tensor weight) { weight_ = register_parameter("weight", std::move(weight)); }

at::Tensor HeadImpl::forward(at::Tensor x) { return at::linear(x, weight_); }

}  // namespace plimsoll::models
