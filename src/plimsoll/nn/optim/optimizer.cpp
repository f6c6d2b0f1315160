#include "plimsoll/nn/optim/optimizer.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/function.h>

#include <algorithm>

namespace plimsoll::nn {

Optimizer::~Optimizer() {
  // The order in which Python frees an optimizer's dictionaries and lists.
  while (!states_.empty()) states_.pop_front();
  for (; !groups_.empty(); groups_.pop_back()) {
    while (!groups_.back().empty()) groups_.back().pop_back();
  }
}

void Optimizer::step() { step(LossClosure()); }

at::Tensor Optimizer::step(const LossClosure& closure) {
  at::Tensor loss;
  observe_step([&] {
    if (closure) {
      const at::AutoGradMode with_gradients(true);
      loss = closure();
    }
    const at::NoGradGuard without_gradients;
    for (std::size_t group = 0; group < groups_.size(); ++group) update_group(group);
  });
  return loss;
}

void Optimizer::zero_grad(bool set_to_none) {
  if (!set_to_none) {
    zero_in_place();
    return;
  }
  for (const auto& group : groups_) {
    for (const at::Tensor& parameter : group) parameter.mutable_grad().reset();
  }
}

void Optimizer::zero_in_place() {
  const bool by_list =
      default_implementation_ == Implementation::kForeach || default_implementation_ == Implementation::kFused;
  // By device first, then by dtype, each in order of appearance, like Python's dictionaries.
  std::vector<std::pair<at::Device, std::vector<std::pair<at::ScalarType, std::vector<at::Tensor>>>>> lists;
  const auto entry = [](auto& entries, auto key) -> auto& {
    const auto found = std::find_if(entries.begin(), entries.end(), [&](const auto& e) { return e.first == key; });
    if (found != entries.end()) return found->second;
    entries.push_back({key, {}});
    return entries.back().second;
  };
  for (const auto& group : groups_) {
    for (const at::Tensor& parameter : group) {
      at::Tensor& gradient = parameter.mutable_grad();
      if (!gradient.defined()) continue;
      if (gradient.grad_fn()) {
        gradient.detach_();
      } else {
        gradient.requires_grad_(false);
      }
      if (by_list && !gradient.is_sparse()) {
        entry(entry(lists, gradient.device()), gradient.scalar_type()).push_back(gradient);
      } else {
        gradient.zero_();
      }
    }
  }
  for (const auto& [device, by_dtype] : lists) {
    for (const auto& [dtype, gradients] : by_dtype) at::_foreach_zero_(gradients);
  }
}

std::vector<at::Tensor> Optimizer::parameters() const {
  std::vector<at::Tensor> all;
  for (const auto& group : groups_) all.insert(all.end(), group.begin(), group.end());
  return all;
}

void Optimizer::add_parameters(std::vector<at::Tensor> parameters) {
  std::unordered_map<const at::TensorImpl*, std::size_t> seen;
  std::size_t next = 0;
  for (const auto& group : groups_) {
    for (const at::Tensor& parameter : group) seen.emplace(parameter.unsafeGetTensorImpl(), next++);
  }
  for (const at::Tensor& parameter : parameters) {
    TORCH_CHECK_VALUE(parameter.defined(), "parameter ", next,
                      " of the optimizer is undefined; leave out parameters that the module does not have");
    TORCH_CHECK_VALUE(
        parameter.is_leaf() || parameter.retains_grad(), "parameter ", next, " of the optimizer, of shape ",
        parameter.sizes(), ", is the result of an operation (", parameter.grad_fn()->name(),
        "): only leaves have gradients to step with. Pass the tensor that it was computed from, or detach it");
    const auto [first, is_new] = seen.emplace(parameter.unsafeGetTensorImpl(), next);
    TORCH_CHECK_VALUE(is_new, "parameter ", next, " of the optimizer, of shape ", parameter.sizes(),
                      ", is the same tensor as parameter ", first->second,
                      " and would be stepped twice: pass a shared parameter once");
    ++next;
  }
  groups_.push_back(std::move(parameters));
}

Optimizer::ParameterState& Optimizer::state_of(const at::Tensor& parameter) {
  const auto [found, is_new] = state_index_.try_emplace(parameter.unsafeGetTensorImpl(), states_.size());
  if (is_new) states_.emplace_back();
  return states_[found->second];
}

void Optimizer::create_state(const at::Tensor& parameter, ParameterState& state, std::string_view name,
                             at::Tensor tensor) {
  state.push_back({std::string(name), tensor});
  report_state(parameter, name, tensor);
}

at::Tensor Optimizer::find_state(const ParameterState& state, std::string_view name) {
  for (const NamedState& entry : state) {
    if (entry.name == name) return entry.tensor;
  }
  return {};
}

void Optimizer::for_each_state(const StateVisitor& visit) const {
  for (const auto& group : groups_) {
    for (const at::Tensor& parameter : group) {
      const auto found = state_index_.find(parameter.unsafeGetTensorImpl());
      if (found == state_index_.end()) continue;
      for (const NamedState& state : states_[found->second]) visit(parameter, state.name, state.tensor);
    }
  }
}

OptimizerState Optimizer::export_state() const {
  OptimizerState exported;
  for (const auto& group : groups_) {
    for (const at::Tensor& parameter : group) {
      const std::size_t index = exported.parameter_count++;
      const auto found = state_index_.find(parameter.unsafeGetTensorImpl());
      if (found == state_index_.end()) continue;
      for (const NamedState& state : states_[found->second]) {
        exported.entries.push_back({index, state.name, state.tensor});
      }
    }
  }
  return exported;
}

void Optimizer::import_state(const OptimizerState& state) {
  std::vector<ParameterState> copies = checked_copies(state);
  state_index_.clear();
  states_.clear();
  const std::vector<at::Tensor> all = parameters();
  for (std::size_t index = 0; index < all.size(); ++index) {
    if (copies[index].empty()) continue;
    ParameterState& own = state_of(all[index]);
    for (NamedState& entry : copies[index]) create_state(all[index], own, entry.name, std::move(entry.tensor));
  }
}

std::vector<Optimizer::ParameterState> Optimizer::checked_copies(const OptimizerState& state) const {
  const at::NoGradGuard without_gradients;
  const std::string optimizer = optimizer_name();
  const std::size_t count = parameters().size();
  TORCH_CHECK_VALUE(
      state.parameter_count == count, "the state to import is of ", state.parameter_count, " parameters, but this ",
      optimizer, " has ", count,
      ": build it from the same parameters, in the same order, as the one that the state was exported from");
  std::vector<ParameterState> given(count);
  for (const OptimizerState::Entry& entry : state.entries) {
    TORCH_CHECK_VALUE(entry.parameter < count, "the state to import names parameter ", entry.parameter, " ('",
                      entry.name, "'), but this ", optimizer, " has ", count, ", counted from 0");
    TORCH_CHECK_VALUE(entry.tensor.defined(), "the state '", entry.name, "' of parameter ", entry.parameter,
                      " to import is an undefined tensor; leave it out, or give its value");
    TORCH_CHECK_VALUE(!find_state(given[entry.parameter], entry.name).defined(), "the state to import has '",
                      entry.name, "' of parameter ", entry.parameter, " twice");
    given[entry.parameter].push_back({entry.name, entry.tensor});
  }
  std::vector<ParameterState> copies(count);
  std::size_t index = 0;
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    for (const at::Tensor& parameter : groups_[group]) {
      const std::size_t at = index++;
      if (given[at].empty()) continue;
      const std::vector<StateSlot> slots = state_slots(group, parameter);
      for (const StateSlot& slot : slots) {
        const at::Tensor tensor = find_state(given[at], slot.name);
        TORCH_CHECK_VALUE(tensor.defined(), "the state to import lacks '", slot.name, "' of parameter ", at, ", which ",
                          optimizer,
                          " keeps with these options: export from an optimizer of the same kind and options");
        TORCH_CHECK_VALUE(tensor.sizes().equals(slot.sizes), "the state '", slot.name, "' of parameter ", at,
                          " to import has shape ", tensor.sizes(), ", but ", optimizer, " expects ",
                          at::IntArrayRef(slot.sizes));
        copies[at].push_back(
            {std::string(slot.name), tensor.detach().to(slot.options, /*non_blocking=*/false, /*copy=*/true)});
      }
      for (const NamedState& entry : given[at]) {
        const bool known =
            std::any_of(slots.begin(), slots.end(), [&](const auto& slot) { return slot.name == entry.name; });
        TORCH_CHECK_VALUE(known, "the state to import has '", entry.name, "' of parameter ", at, ", which ", optimizer,
                          " does not keep with these options: export from an optimizer of the same kind and options");
      }
    }
  }
  return copies;
}

}  // namespace plimsoll::nn
