#include "plimsoll/models/rms_norm.h"

#include <ATen/Functions.h>

namespace plimsoll::models {

RMSNormImpl::RMSNormImpl(std::int64_t dim, double epsilon, job::Norm kind) : epsilon_(epsilon), kind_(kind) {
  weight = register_parameter("weight", at::ones({dim}));
}

at::Tensor RMSNormImpl::forward(at::Tensor x) {
  if (kind_ == job::Norm::kFused) return at::rms_norm(x, weight.sizes(), weight, epsilon_);
  auto y = x.to(at::kFloat);
  auto scale = y.pow(2);
  scale = scale.mean(-1, /*keepdim=*/true);
  scale = scale + epsilon_;
  scale = at::rsqrt(scale);
  y = y * scale;
  scale.reset();
  y = y.to(x.scalar_type());
  y = y * weight;
  return y;
}

}  // namespace plimsoll::models
