#include "plimsoll/models/feed_forward.h"

#include <ATen/Functions.h>

#include "plimsoll/models/linear.h"

namespace plimsoll::models {

FeedForwardImpl::FeedForwardImpl(const architecture::Architecture& a) {
  const bool fused = a.family == architecture::Family::kPhi3;
  if (fused) {
    w13_ = register_module("w13", linear(a.dim, 2 * a.hidden, a.mlp_bias));
  } else {
    w1_ = register_module("w1", linear(a.dim, a.hidden, a.mlp_bias));
  }
  w2_ = register_module("w2", linear(a.hidden, a.dim, a.mlp_bias));
  if (!fused) w3_ = register_module("w3", linear(a.dim, a.hidden, a.mlp_bias));
}

at::Tensor FeedForwardImpl::forward(at::Tensor x) {
  if (!w13_.is_empty()) {
    const auto parts = w13_(x).chunk(2, -1);
    auto h = at::silu(parts[0]);
    h = h * parts[1];
    return w2_(h);
  }
  auto h = w1_(x);
  h = at::silu(h);
  {
    const auto up = w3_(x);
    h = h * up;
  }
  return w2_(h);
}

}  // namespace plimsoll::models
