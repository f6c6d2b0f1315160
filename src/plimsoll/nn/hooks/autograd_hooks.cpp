#include "plimsoll/nn/hooks/autograd_hooks.h"

#include <c10/util/Exception.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/graph_task.h>
#include <torch/csrc/autograd/variable.h>

#include <atomic>
#include <memory>
#include <utility>

namespace plimsoll::nn {
namespace {

// One removable hook. torch destroys a removed hook at once, even while it runs; so this one is only emptied.
class SingleHook final : public HookOwner {
 public:
  explicit SingleHook(TensorHook hook) : hook_(std::make_shared<const TensorHook>(std::move(hook))) {}

  void remove_hook(std::uint64_t) noexcept override {
    std::shared_ptr<const TensorHook> removed;
    const std::lock_guard lock(mutex_);
    removed.swap(hook_);
  }

  at::Tensor operator()(const at::Tensor& gradient) const {
    std::shared_ptr<const TensorHook> hook;
    {
      const std::lock_guard lock(mutex_);
      hook = hook_;
    }
    return hook ? (*hook)(gradient) : at::Tensor();
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const TensorHook> hook_;
};

// [Note: order of hooks] libtorch keeps all C++ hooks of a tensor at one position in its node's list,
// that of the first of them, and all Python hooks at another. If both languages register hooks on one tensor (FSDP2 in
// Python, a tracker in C++), each of our hooks gets a separate position, so that they run in the order of registration.
class OwnPlace final : public torch::autograd::FunctionPreHook {
 public:
  OwnPlace(std::shared_ptr<const SingleHook> hook, std::size_t index) : hook_(std::move(hook)), index_(index) {}

  torch::autograd::variable_list operator()(const torch::autograd::variable_list& gradients) override {
    auto results = gradients;
    const auto alive = hook_;
    if (auto replaced = (*alive)(gradients[index_]); replaced.defined()) results[index_] = std::move(replaced);
    return results;
  }
  /// Compiled autograd does not support it.
  void compiled_args(torch::dynamo::autograd::CompiledNodeArgs&) const override {}

 private:
  std::shared_ptr<const SingleHook> hook_;
  std::size_t index_;
};

std::atomic<LeafHooks> leaf_hooks{nullptr};

using PostAccumulateHookList = HookList<PostAccumulateGradHook>;

// Occupies libtorch's one slot.
class PostAccumulateHooks final : public torch::autograd::PostAccumulateGradHook {
 public:
  explicit PostAccumulateHooks(std::unique_ptr<torch::autograd::PostAccumulateGradHook> first)
      : first_(std::move(first)) {}

  void operator()(const at::Tensor& tensor) override {
    if (first_) (*first_)(tensor);
    const auto hooks = hooks_->snapshot();
    if (!hooks) return;
    for (const auto& hook : *hooks) hook.function(tensor);
  }

  // Compiled autograd does not support ours.
  void compiled_args(torch::dynamo::autograd::CompiledNodeArgs& args) const override {
    if (first_) first_->compiled_args(args);
  }
  void apply_with_saved(torch::autograd::Variable& tensor,
                        torch::dynamo::autograd::SwapSavedVariables& saved) override {
    if (first_) first_->apply_with_saved(tensor, saved);
  }

  PostAccumulateHookList& hooks() { return *hooks_; }

 private:
  std::unique_ptr<torch::autograd::PostAccumulateGradHook> first_;
  std::shared_ptr<PostAccumulateHookList> hooks_ = std::make_shared<PostAccumulateHookList>();
};

}  // namespace

void set_leaf_hooks(LeafHooks hooks) { leaf_hooks.store(hooks, std::memory_order_release); }

HookHandle register_tensor_hook(const at::Tensor& tensor, TensorHook hook) {
  TORCH_CHECK(tensor.requires_grad(), "Expected a tensor that requires a gradient, found one of shape ", tensor.sizes(),
              " that does not: its hook would never run. Call requires_grad_() on it first.");
  if (const auto foreign = leaf_hooks.load(std::memory_order_acquire); foreign != nullptr && tensor.is_leaf()) {
    return foreign(tensor, std::move(hook));
  }
  const auto single = std::make_shared<SingleHook>(std::move(hook));
  if (const auto& node = tensor.grad_fn()) {
    node->add_tensor_pre_hook(std::make_unique<OwnPlace>(single, tensor.output_nr()));
    return HookHandle(single, 0);
  }
  tensor.register_hook([single](const at::Tensor& gradient) -> at::Tensor {
    const auto alive = single;
    return (*alive)(gradient);
  });
  // Only the tensor owns the hook; the weak reference expires with it.
  return HookHandle(single, 0);
}

HookHandle register_post_accumulate_grad_hook(const at::Tensor& tensor, PostAccumulateGradHook hook) {
  TORCH_CHECK(tensor.requires_grad() && tensor.is_leaf(),
              "Expected a leaf that requires a gradient, found a tensor of shape ", tensor.sizes(),
              tensor.is_leaf() ? " that does not require one" : " that an operator made",
              ": nothing is accumulated into its grad(). Use register_tensor_hook for results of operators.");
  auto& slot = torch::autograd::impl::post_acc_grad_hooks(tensor);
  auto* hooks = dynamic_cast<PostAccumulateHooks*>(slot.get());
  if (hooks == nullptr) {
    auto owned = std::make_unique<PostAccumulateHooks>(std::move(slot));
    hooks = owned.get();
    torch::autograd::impl::set_post_acc_grad_hooks(tensor, std::move(owned));
  }
  return hooks->hooks().add(std::move(hook), /*prepend=*/false, /*always_call=*/false);
}

bool in_backward() { return torch::autograd::get_current_graph_task_id() != -1; }

void queue_callback(std::function<void()> callback) {
  TORCH_CHECK(in_backward(),
              "queue_callback was called outside of a backward pass. Call it from a hook that runs in one.");
  torch::autograd::Engine::get_default_engine().queue_callback(std::move(callback));
}

}  // namespace plimsoll::nn
