// Export and import of an optimizer's state.

#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>

#include <algorithm>

#include "plimsoll/nn/optim/optimizer.h"

namespace plimsoll::nn {

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
