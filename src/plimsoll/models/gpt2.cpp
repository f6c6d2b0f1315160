#include "plimsoll/models/gpt2.h"

#include <ATen/Functions.h>

#include "plimsoll/models/linear.h"

namespace plimsoll::models {

nn::LayerNorm layer_norm(const architecture::Architecture& a) {
  return nn::LayerNorm(torch::nn::LayerNormOptions({a.dim}).eps(a.norm_epsilon));
}

GPT2AttentionImpl::GPT2AttentionImpl(const architecture::Architecture& a) : heads_(a.heads) {
  c_attn_ = register_module("c_attn", linear(a.dim, 3 * a.dim, a.qkv_bias));
  c_proj_ = register_module("c_proj", linear(a.dim, a.dim, a.output_bias));
}

at::Tensor GPT2AttentionImpl::forward(at::Tensor x) {
  const auto batch = x.size(0), length = x.size(1), dim = x.size(2);
  const auto parts = c_attn_(x).split(dim, 2);
  const auto heads = [&](const at::Tensor& part) {
    return part.view({batch, length, heads_, dim / heads_}).transpose(1, 2);
  };
  const auto out = at::scaled_dot_product_attention(heads(parts[0]), heads(parts[1]), heads(parts[2]),
                                                    /*attn_mask=*/{}, /*dropout_p=*/0.0, /*is_causal=*/true);
  return c_proj_(out.transpose(1, 2).contiguous().view({batch, length, dim}));
}

GPT2FeedForwardImpl::GPT2FeedForwardImpl(const architecture::Architecture& a) {
  c_fc_ = register_module("c_fc", linear(a.dim, a.hidden, a.mlp_bias));
  c_proj_ = register_module("c_proj", linear(a.hidden, a.dim, a.mlp_bias));
}

at::Tensor GPT2FeedForwardImpl::forward(at::Tensor x) {
  auto h = c_fc_(x);
  h = at::gelu(h, "tanh");
  return c_proj_(h);
}

GPT2BlockImpl::GPT2BlockImpl(const architecture::Architecture& a) {
  ln_1_ = register_module("ln_1", layer_norm(a));
  attn_ = register_module("attn", GPT2Attention(a));
  ln_2_ = register_module("ln_2", layer_norm(a));
  mlp_ = register_module("mlp", GPT2FeedForward(a));
}

at::Tensor GPT2BlockImpl::forward(at::Tensor x) {
  auto branch = ln_1_(x);
  branch = attn_(branch);
  x = x + branch;
  branch.reset();
  branch = ln_2_(x);
  branch = mlp_(branch);
  return x + branch;
}

}  // namespace plimsoll::models
