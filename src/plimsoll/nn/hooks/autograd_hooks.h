#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "plimsoll/nn/hooks/hook_list.h"

/// Removable hooks on gradients, as in Python's torch. They run on the autograd threads that compute the gradient. One
/// hook may run on several threads at once if its tensors are on several devices.
namespace plimsoll::nn {

/// Receives a gradient. The result replaces the gradient, unless it is undefined.
using TensorHook = std::function<at::Tensor(const at::Tensor& gradient)>;

/// Runs each time the gradient of the tensor is computed. Throws if the tensor requires no gradient.
HookHandle register_tensor_hook(const at::Tensor& tensor, TensorHook hook);

/// Registers hooks on leaves for another front end: Python and libtorch keep a leaf's hooks in the same slot, and the
/// second one takes it over. Set once, before any hook is registered.
using LeafHooks = HookHandle (*)(const at::Tensor& leaf, TensorHook hook);
void set_leaf_hooks(LeafHooks hooks);

/// Receives the tensor that has a new `grad()`.
using PostAccumulateGradHook = std::function<void(const at::Tensor& tensor)>;

/// Runs after each accumulation into the `grad()` of a leaf, after the hooks registered before it. libtorch has one
/// slot for such hooks per tensor; an existing hook keeps running, first. Throws if the tensor is not a leaf that
/// requires a gradient.
HookHandle register_post_accumulate_grad_hook(const at::Tensor& tensor, PostAccumulateGradHook hook);

enum class MultiGradMode : std::uint8_t {
  kAll,  ///< Once per backward pass, after the last gradient that the pass computes.
  kAny,  ///< Once per backward pass, with the first gradient.
};

/// In mode kAll, receives one entry for each tensor, undefined if the pass did not reach it. In mode kAny, receives one
/// gradient.
using MultiGradHook = std::function<void(const std::vector<at::Tensor>& gradients)>;

/// Runs in each backward pass (or call of `grad`) that reaches any of the tensors. The hook does not wait for tensors
/// that the pass does not reach, or that are not on the way to the requested inputs. Unlike torch's, it counts leaves
/// with a gradient that `grad` returns. Tensors that require no gradient are ignored in mode kAny and an error in kAll.
HookHandle register_multi_grad_hook(const std::vector<at::Tensor>& tensors, MultiGradHook hook,
                                    MultiGradMode mode = MultiGradMode::kAll);

/// Whether this thread runs a backward pass.
bool in_backward();

/// Runs the function at the end of this thread's backward pass. Throws outside of one.
void queue_callback(std::function<void()> callback);

}  // namespace plimsoll::nn
