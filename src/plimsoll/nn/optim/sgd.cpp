#include "plimsoll/nn/optim/sgd.h"

#include <ATen/Functions.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cstddef>
#include <functional>

#include "plimsoll/nn/optim/foreach.h"
#include "plimsoll/nn/optim/python_values.h"

// Mirrors _single_tensor_sgd, _multi_tensor_sgd and _fused_sgd (torch 2.13); see [Note: order of frees] in
// adam_update.cpp.

namespace plimsoll::nn {
namespace {

constexpr std::string_view kMomentumBuffer = "momentum_buffer";

/// The inputs of one SGD update: for each parameter with a gradient, at the same index, its gradient and its buffer.
struct SGDLists {
  std::vector<at::Tensor> parameters;
  std::vector<at::Tensor> gradients;
  std::vector<at::Tensor> momentum_buffers;  ///< Undefined before the first step. Empty if momentum is 0.
  bool has_sparse_gradient = false;
  /// Called directly after each buffer is created.
  std::function<void(std::size_t index, const at::Tensor& buffer)> created;
};

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

void update(SGDLists& lists, const SGDOptions& options) {
  switch (choose_implementation(options.implementation, lists.parameters)) {
    case Implementation::kFused:
      return sgd_fused(lists, options);
    case Implementation::kForeach:
      return sgd_foreach(lists, options);
    default:
      return sgd_for_loop(lists, options);
  }
}

void check_not_negative(const char* what, double value) {
  // Not `value >= 0`: torch accepts NaN here, but not in Adam.
  TORCH_CHECK_VALUE(!(value < 0), "SGD's ", what, " is ", value, ", but has to be at least 0");
}

}  // namespace

void check_group(const std::vector<at::Tensor>&, const SGDOptions& options) {
  check_not_negative("lr", options.lr);
  check_not_negative("momentum", options.momentum);
  check_not_negative("weight_decay", options.weight_decay);
  TORCH_CHECK_VALUE(!options.nesterov || (options.momentum > 0 && options.dampening == 0),
                    "Nesterov momentum needs a momentum above 0 and no dampening; SGD was given momentum ",
                    options.momentum, " and dampening ", options.dampening);
}

void SGD::update_group(std::size_t group) {
  const SGDOptions& options = this->options(group);
  const bool is_fused = options.implementation == Implementation::kFused;
  SGDLists lists;
  for (const at::Tensor& parameter : parameter_groups()[group]) {
    const at::Tensor& gradient = parameter.grad();
    if (!gradient.defined()) continue;
    if (is_fused) check_fused(optimizer_name(), parameter);
    lists.parameters.push_back(parameter);
    lists.gradients.push_back(gradient);
    lists.has_sparse_gradient |= gradient.is_sparse();
    if (options.momentum != 0) lists.momentum_buffers.push_back(find_state(state_of(parameter), kMomentumBuffer));
  }
  std::vector<at::Tensor> new_to_momentum;
  lists.created = [&](std::size_t index, const at::Tensor& buffer) {
    const at::Tensor& parameter = lists.parameters[index];
    new_to_momentum.push_back(parameter);
    create_state(parameter, state_of(parameter), kMomentumBuffer, buffer);
  };
  try {
    update(lists, options);
  } catch (...) {
    // As in torch, an update that fails leaves no buffer: a fused one would be uninitialised.
    for (const at::Tensor& parameter : new_to_momentum) state_of(parameter).clear();
    throw;
  }
}

std::vector<Optimizer::StateSlot> SGD::state_slots(std::size_t group, const at::Tensor& parameter) const {
  if (options(group).momentum == 0) return {};
  return {{kMomentumBuffer, parameter.sizes().vec(), parameter.options()}};
}

}  // namespace plimsoll::nn
