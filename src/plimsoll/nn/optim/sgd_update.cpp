#include "plimsoll/nn/optim/sgd_update.h"

#include <ATen/Functions.h>
#include <c10/util/Exception.h>

#include <algorithm>

#include "plimsoll/nn/optim/python_values.h"
#include "plimsoll/nn/optim/tensor_groups.h"

// Mirrors _single_tensor_sgd, _multi_tensor_sgd and _fused_sgd (torch 2.13); see [Note: order of frees] in
// adam_for_loop.cpp.

namespace plimsoll::nn {
namespace {

/// Stores a new buffer at `index`.
at::Tensor create_buffer(SGDLists& lists, std::size_t index, at::Tensor buffer) {
  lists.momentum_buffers[index] = buffer;
  lists.created(index, buffer);
  return buffer;
}

/// Updates the buffers of a group with the gradients and returns them.
TensorTuple update_buffers(SGDLists& lists, const TensorGroup& group, const TensorTuple& gradients,
                           const SGDOptions& options) {
  const TensorTuple& before = group.lists[2];
  if (std::all_of(before.begin(), before.end(), [](const at::Tensor& buffer) { return buffer.defined(); })) {
    at::_foreach_mul_(before, options.momentum);
    at::_foreach_add_(before, gradients, 1 - options.dampening);
    return before;
  }
  std::vector<at::Tensor> buffers;
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (before[i].defined()) {
      before[i].mul_(as_tensor(options.momentum)).add_(gradients[i], 1 - options.dampening);
      buffers.push_back(before[i]);
    } else {
      buffers.push_back(create_buffer(lists, group.indices[i], gradients[i].detach().clone()));
    }
  }
  return buffers;
}

bool any_sparse(const TensorTuple& gradients) {
  return std::any_of(gradients.begin(), gradients.end(),
                     [](const at::Tensor& gradient) { return gradient.is_sparse(); });
}

}  // namespace

void sgd_for_loop(SGDLists& lists, const SGDOptions& options) {
  at::Tensor buffer, grad;
  for (std::size_t i = 0; i < lists.parameters.size(); ++i) {
    const at::Tensor& param = lists.parameters[i];
    grad = options.maximize ? lists.gradients[i].neg() : lists.gradients[i];
    if (options.weight_decay != 0) grad = grad.add(param, options.weight_decay);
    if (options.momentum != 0) {
      buffer = lists.momentum_buffers[i];
      if (buffer.defined()) {
        buffer.mul_(as_tensor(options.momentum)).add_(grad, 1 - options.dampening);
      } else {
        buffer = create_buffer(lists, i, grad.detach().clone());
      }
      grad = options.nesterov ? grad.add(buffer, options.momentum) : buffer;
    }
    param.add_(grad, -options.lr);
  }
}

void sgd_foreach(SGDLists& lists, const SGDOptions& options) {
  if (lists.parameters.empty()) return;
  TensorTuple buffers, gradients;
  for (const TensorGroup& group :
       group_by_device_and_dtype({lists.parameters, lists.gradients, lists.momentum_buffers})) {
    const TensorTuple& parameters = group.lists[0];
    gradients = group.lists[1];
    const bool is_sparse = lists.has_sparse_gradient && any_sparse(gradients);
    if (options.maximize) gradients = at::_foreach_neg(gradients);
    if (options.weight_decay != 0) {
      if (options.maximize) {
        at::_foreach_add_(gradients, parameters, options.weight_decay);
      } else {
        gradients = at::_foreach_add(gradients, parameters, options.weight_decay);
      }
    }
    if (options.momentum != 0) {
      buffers = update_buffers(lists, group, gradients, options);
      if (options.nesterov) {
        at::_foreach_add_(gradients, buffers, options.momentum);
      } else {
        gradients = buffers;
      }
    }
    if (!is_sparse) {
      at::_foreach_add_(parameters, gradients, -options.lr);
      continue;
    }
    for (std::size_t i = 0; i < parameters.size(); ++i) parameters[i].add_(gradients[i], -options.lr);
  }
}

void sgd_fused(SGDLists& lists, const SGDOptions& options) {
  if (lists.parameters.empty()) return;
  TORCH_CHECK(
      !lists.has_sparse_gradient,
      "the fused form of SGD steps dense gradients, but one is sparse: choose Implementation::kForLoop or kForeach");
  const auto is_missing = [](const at::Tensor& buffer) { return !buffer.defined(); };
  auto& buffers = lists.momentum_buffers;
  const auto missing = static_cast<std::size_t>(std::count_if(buffers.begin(), buffers.end(), is_missing));
  const bool is_first_step = options.momentum != 0 && missing == buffers.size();
  TORCH_CHECK(missing == 0 || is_first_step,
              "the fused form of SGD with momentum starts all buffers of a group at once; ", missing, " of ",
              buffers.size(),
              " parameters with a gradient have no buffer yet: give all parameters of the "
              "group a gradient in the first step, or choose Implementation::kForLoop or kForeach");
  if (is_first_step) {
    for (std::size_t i = 0; i < buffers.size(); ++i) create_buffer(lists, i, at::empty_like(lists.gradients[i]));
  }
  for (const TensorGroup& group : group_by_device_and_dtype({lists.parameters, lists.gradients, buffers})) {
    at::_fused_sgd_(group.lists[0], group.lists[1], group.lists[2], options.weight_decay, options.momentum, options.lr,
                    options.dampening, options.nesterov, options.maximize, is_first_step);
  }
}

}  // namespace plimsoll::nn
