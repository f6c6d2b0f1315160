#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "plimsoll/nn/hooks/hook_handle.h"

/// Hooks on gradients that can be removed again, as torch has them in Python. They run on the threads of autograd that
/// compute the gradient; one hook may run on several threads at once where its tensors live on several devices.
namespace plimsoll::nn {

/// Gets a gradient; what it returns replaces the gradient, unless it is undefined.
using TensorHook = std::function<at::Tensor(const at::Tensor& gradient)>;

/// Runs whenever the gradient of the tensor is computed. Throws where the tensor needs none.
HookHandle register_tensor_hook(const at::Tensor& tensor, TensorHook hook);

/// How hooks are put on leaves where another front end does it: Python keeps those of a leaf in the place that libtorch
/// keeps its own in, and whoever comes second takes it over. Set once, before any is registered.
using LeafHooks = HookHandle (*)(const at::Tensor& leaf, TensorHook hook);
void set_leaf_hooks(LeafHooks hooks);

/// Gets the tensor whose `grad()` was just written.
using PostAccumulateGradHook = std::function<void(const at::Tensor& tensor)>;

/// Runs after each accumulation into the `grad()` of a leaf, after those registered before it. libtorch has room for
/// one such hook a tensor; one that is there already keeps running, first. Throws where the tensor is no leaf that
/// needs a gradient.
HookHandle register_post_accumulate_grad_hook(const at::Tensor& tensor, PostAccumulateGradHook hook);

enum class MultiGradMode : std::uint8_t {
  kAll,  ///< Once per backward pass, when the last gradient that the pass computes is there.
  kAny,  ///< Once per backward pass, with the first gradient.
};

/// Gets, in mode kAll, one entry for each tensor, undefined for those that the pass did not reach; in mode kAny, one
/// gradient.
using MultiGradHook = std::function<void(const std::vector<at::Tensor>& gradients)>;

/// Runs in each backward pass (or call of `grad`) that reaches any of the tensors. A tensor that the pass does not
/// reach, or that does not lie on the way to the inputs asked for, is not waited for. In mode kAny tensors that need no
/// gradient are passed over; in mode kAll they are an error, as is a leaf whose gradient `grad` was asked for.
HookHandle register_multi_grad_hook(const std::vector<at::Tensor>& tensors, MultiGradHook hook,
                                    MultiGradMode mode = MultiGradMode::kAll);

/// Whether this thread is at work on a backward pass.
bool in_backward();

/// Runs the function when the backward pass that this thread is at work on has finished. Throws outside of one.
void queue_callback(std::function<void()> callback);

}  // namespace plimsoll::nn
