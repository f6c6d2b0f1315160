#include "plimsoll/models/gpt2.h"

#include <ATen/Functions.h>

#include "plimsoll/models/linear.h"

namespace plimsoll::models {

nn::LayerNorm layer_norm(const architecture::Architecture& a) {
  return nn::LayerNorm(torch::nn::LayerNormOptions({a.dim}).eps(a.norm_epsilon));
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

}  // namespace plimsoll::models
