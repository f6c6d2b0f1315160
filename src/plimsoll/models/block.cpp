#include "plimsoll/models/block.h"

#include <ATen/Functions.h>

#include <set>
#include <string>

#include "plimsoll/nn/checkpoint/checkpoint.h"
#include "plimsoll/nn/checkpoint/selective_checkpoint.h"

namespace plimsoll::models {
namespace {

/// torchtitan's policy: keeps attention's results, and those of the first, third, … matrix product of a block.
nn::CheckpointContexts keep_attention_and_every_other_matmul() {
  static const c10::OperatorName kMatmul("aten::mm", "");
  static const std::set<std::string> kAttention = {"aten::_scaled_dot_product_flash_attention",
                                                   "aten::_scaled_dot_product_efficient_attention",
                                                   "aten::_scaled_dot_product_cudnn_attention"};
  return nn::create_selective_checkpoint_contexts([matmuls = 0](const c10::OperatorHandle& op, bool) mutable {
    const auto& name = op.operator_name();
    const bool keep = name == kMatmul ? ++matmuls % 2 == 1 : kAttention.contains(name.name);
    return keep ? nn::CheckpointPolicy::kMustSave : nn::CheckpointPolicy::kPreferRecompute;
  });
}

}  // namespace

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

GPT2BlockImpl::GPT2BlockImpl(const architecture::Architecture& a) : heads_(a.heads) {
  ln_1_ = register_module("ln_1", layer_norm(a));
  c_attn_ = register_module("c_attn", linear(a.dim, 3 * a.dim, a.qkv_bias));
  c_proj_ = register_module("c_proj", linear(a.dim, a.dim, a.output_bias));
  ln_2_ = register_module("ln_2", layer_norm(a));
  c_fc_ = register_module("c_fc", linear(a.dim, a.hidden, a.mlp_bias));
  m_proj_ = register_module("m_proj", linear(a.hidden, a.dim, a.mlp_bias));
}

at::Tensor GPT2BlockImpl::forward(at::Tensor x) {
  const auto batch = x.size(0), length = x.size(1), dim = x.size(2);
  // As in Python: temporaries of a call are freed when it returns, locals at the end.
  auto branch = ln_1_(x);
  branch = c_attn_(branch);
  auto parts = branch.split(dim, 2);
  branch.reset();
  for (auto& part : parts) part = part.view({batch, length, heads_, dim / heads_}).transpose(1, 2);
  const auto out = at::scaled_dot_product_attention(parts[0], parts[1], parts[2], /*attn_mask=*/{}, /*dropout_p=*/0.0,
                                                    /*is_causal=*/true);
  branch = c_proj_(out.transpose(1, 2).contiguous().view({batch, length, dim}));
  x = x + branch;
  branch.reset();
  branch = ln_2_(x);
  branch = c_fc_(branch);
  branch = at::gelu(branch, "tanh");
  branch = m_proj_(branch);
  return x + branch;
}

CheckpointedImpl::CheckpointedImpl(std::shared_ptr<torch::nn::Module> block, RunBlock run, job::CheckpointKind kind)
    : run_(std::move(run)), options_{.preserve_rng_state = false} {
  register_module("block", std::move(block));
  if (kind == job::CheckpointKind::kSelective) options_.context_fn = keep_attention_and_every_other_matmul;
}

at::Tensor CheckpointedImpl::forward(at::Tensor x, at::Tensor turns) {
  if (!turns.defined()) {
    return nn::checkpoint_with(options_, [run = run_](const at::Tensor& input) { return run(input, {}); }, x);
  }
  return nn::checkpoint_with(options_, run_, x, turns);
}

}  // namespace plimsoll::models
