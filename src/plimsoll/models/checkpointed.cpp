#include "plimsoll/models/checkpointed.h"

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
