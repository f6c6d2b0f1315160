#include "plimsoll/models/block.h"

#include <ATen/Functions.h>

namespace plimsoll::models {

BlockImpl::BlockImpl(const architecture::Architecture& a, job::Norm norm, std::int64_t index) {
  attention_ = register_module("attention", Attention(a, norm));
  if (a.has_experts(index)) {
    experts_ = register_module("feed_forward", MixtureOfExperts(a.dim, *a.experts));
  } else {
    feed_forward_ = register_module("feed_forward", FeedForward(a));
  }
  attention_norm_ = register_module("attention_norm", RMSNorm(a.dim, a.norm_epsilon, norm));
  ffn_norm_ = register_module("ffn_norm", RMSNorm(a.dim, a.norm_epsilon, norm));
}

at::Tensor BlockImpl::forward(at::Tensor x, at::Tensor turns) {
  // One local for the branch: the assignment frees the tensor that Python frees when a call returns.
  auto branch = attention_norm_(x);
  branch = attention_(branch, turns);
  const auto h = x + branch;
  branch.reset();
  branch = ffn_norm_(h);
  branch = experts_.is_empty() ? feed_forward_(branch) : experts_(branch);
  return h + branch;
}

}  // namespace plimsoll::models
