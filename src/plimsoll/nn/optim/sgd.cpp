#include "plimsoll/nn/optim/sgd.h"

#include <c10/util/Exception.h>

#include <cstddef>
#include <vector>

#include "plimsoll/nn/optim/implementation.h"
#include "plimsoll/nn/optim/sgd_update.h"

namespace plimsoll::nn {
namespace {

constexpr std::string_view kMomentumBuffer = "momentum_buffer";

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
