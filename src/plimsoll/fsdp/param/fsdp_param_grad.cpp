#include <ATen/Functions.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/variable.h>

#include <utility>

#include "plimsoll/fsdp/param/fsdp_param.h"
#include "plimsoll/fsdp/runtime_observer.h"
#include "plimsoll/nn/hooks/autograd_hooks.h"

// The gradients of the two forms, see [Note: One tensor, two forms].
namespace plimsoll::fsdp {

void FSDPParam::register_gradient_hook() {
  // Checked each time: parameters may be frozen and unfrozen at any time.
  if (gradient_hook_registered_ || !param_.requires_grad()) return;
  gradient_hook_ = nn::register_tensor_hook(param_, [this](const at::Tensor& gradient) {
    on_gradient(gradient);
    return at::Tensor();
  });
  gradient_hook_registered_ = true;
}

void FSDPParam::on_gradient(const at::Tensor& gradient) {
  const bool of_shard = gradient.sizes() == at::IntArrayRef(sharded_size_);
  if (shown_ != Shown::kUnsharded && !expects_unsharded_grad_ && of_shard) return;  // Computed at rest.
  TORCH_CHECK(gradient.sizes() == at::IntArrayRef(orig_size_), "A gradient of shape ", gradient.sizes(),
              " came to the parameter '", fqn_, "', which is whole now and has shape ", at::IntArrayRef(orig_size_),
              ": a value was computed from its shard, outside its module's forward. Run that backward while the module "
              "is at rest, or call unshard() before computing it.");
  const GroupScope scope(group_);
  notify(MemoryUse::kUnshardedGrad, gradient);
  show_unsharded_grad();
}

void FSDPParam::show_unsharded_grad() {
  if (shows_unsharded_grad_) return;
  // Post-backward shows the shard's gradient again. Without one, or if the gradient comes later, the end of backward
  // does.
  nn::queue_callback([self = self_] {
    if (*self != nullptr) (*self)->show_sharded_grad();
  });
  // A module that does not unshard in backward gets the whole parameter's shape, without memory, for its gradient.
  if (shown_ != Shown::kUnsharded && unsharded_.defined()) show(Shown::kUnsharded, unsharded_);
  std::swap(hidden_grad_, param_.mutable_grad());
  std::swap(hidden_post_accumulate_hooks_, torch::autograd::impl::post_acc_grad_hooks(param_));
  shows_unsharded_grad_ = true;
}

void FSDPParam::show_sharded_grad() {
  expects_unsharded_grad_ = false;
  if (!shows_unsharded_grad_) return;
  std::swap(hidden_grad_, param_.mutable_grad());
  std::swap(hidden_post_accumulate_hooks_, torch::autograd::impl::post_acc_grad_hooks(param_));
  shows_unsharded_grad_ = false;
  if (shown_ == Shown::kUnsharded && sharded_state_ != ShardedState::kUnsharded) show(Shown::kSharded, sharded_);
}

at::Tensor FSDPParam::sharded_grad() const {
  return shows_unsharded_grad_ ? hidden_grad_ : static_cast<const at::Tensor&>(param_.grad());
}

at::Tensor FSDPParam::unsharded_grad() const {
  return shows_unsharded_grad_ ? static_cast<const at::Tensor&>(param_.grad()) : hidden_grad_;
}

void FSDPParam::clear_unsharded_grad() {
  (shows_unsharded_grad_ ? param_.mutable_grad() : hidden_grad_) = at::Tensor();
}

void FSDPParam::accumulate_unsharded_grad_if_needed() {
  if (!unsharded_accumulated_grad.defined()) return;
  const at::Tensor grad = unsharded_grad();
  if (!grad.defined()) return;
  const at::NoGradGuard no_grad;
  unsharded_accumulated_grad.add_(grad);
  clear_unsharded_grad();
}

void FSDPParam::to_accumulated_grad_if_needed() {
  const at::Tensor grad = unsharded_grad();
  if (!grad.defined()) return;
  if (!reduce_dtype_ || grad.scalar_type() == *reduce_dtype_) {
    notify(MemoryUse::kAccumulatedGrad, grad);
    return;
  }
  const at::NoGradGuard no_grad;
  const MemoryScope memory(MemoryUse::kAccumulatedGrad);
  clear_unsharded_grad();
  unsharded_accumulated_grad = grad.to(*reduce_dtype_);
}

void FSDPParam::set_sharded_grad(at::Tensor grad) {
  TORCH_INTERNAL_ASSERT(!shows_unsharded_grad_);
  notify(MemoryUse::kShardedGrad, grad);
  param_.mutable_grad() = std::move(grad);
}

bool FSDPParam::has_post_accumulate_grad_hooks() const {
  return torch::autograd::impl::post_acc_grad_hooks(param_) != nullptr;
}

void FSDPParam::run_post_accumulate_grad_hooks() {
  const auto& hooks = torch::autograd::impl::post_acc_grad_hooks(param_);
  if (!hooks) return;
  // The hooks see the shard, also if the parameter stays whole after backward.
  const bool whole = shown_ == Shown::kUnsharded;
  if (whole) show(Shown::kSharded, sharded_);
  (*hooks)(param_);
  if (whole) {
    show(Shown::kUnsharded, unsharded_);
    whole_version_ = param_._version();
  }
}

void FSDPParam::check_steppable() const {
  TORCH_CHECK(shown_ != Shown::kUnsharded || !param_.grad().defined(),
              "An optimizer was about to step on the whole "
              "parameter '",
              fqn_,
              "' with the gradient of its shard. Call FSDPModule::reshard() on its module before the "
              "step: a forward without gradients leaves the root's parameters whole, and so does "
              "set_reshard_after_backward(false).");
}

}  // namespace plimsoll::fsdp
