#include "plimsoll/nn/optim/adam.h"

#include <ATen/Functions.h>
#include <c10/core/DefaultDtype.h>
#include <c10/util/Exception.h>

#include <cstddef>

#include "plimsoll/nn/optim/adam_update.h"
#include "plimsoll/nn/optim/foreach.h"

namespace plimsoll::nn {
namespace {

constexpr std::string_view kStep = "step";
constexpr std::string_view kExpAvg = "exp_avg";
constexpr std::string_view kExpAvgSq = "exp_avg_sq";
constexpr std::string_view kMaxExpAvgSq = "max_exp_avg_sq";

bool is_fused(const AdamOptions& options) { return options.implementation == Implementation::kFused; }

/// The step count is on the device that reads it.
at::TensorOptions step_options(const at::Tensor& parameter, const AdamOptions& options) {
  const bool is_double = !is_fused(options) && c10::get_default_dtype_as_scalartype() == at::kDouble;
  const bool on_device = options.capturable || is_fused(options);
  return at::TensorOptions()
      .dtype(is_double ? at::kDouble : at::kFloat)
      .device(on_device ? parameter.device() : at::Device(at::kCPU));
}

void check_number(const char* what, double value, bool holds, const char* condition) {
  TORCH_CHECK_VALUE(holds, "Adam's ", what, " is ", value, ", but has to be ", condition);
}

}  // namespace

void check_group(const std::vector<at::Tensor>& parameters, const AdamOptions& options) {
  check_number("lr", options.lr, options.lr >= 0, "at least 0");
  check_number("eps", options.eps, options.eps >= 0, "at least 0");
  const auto [beta1, beta2] = options.betas;
  check_number("betas[0]", beta1, beta1 >= 0 && beta1 < 1, "in [0, 1)");
  check_number("betas[1]", beta2, beta2 >= 0 && beta2 < 1, "in [0, 1)");
  check_number("weight_decay", options.weight_decay, options.weight_decay >= 0, "at least 0");
  for (const at::Tensor& parameter : parameters) {
    TORCH_CHECK_VALUE(
        !parameter.defined() || !parameter.is_complex(), "Adam steps real parameters, but one of shape ",
        parameter.sizes(), " is ", parameter.scalar_type(),
        ": keep it as a real parameter with a last dimension of 2 and use at::view_as_complex in the forward");
  }
}

void Adam::create_states(const at::Tensor& parameter, const AdamOptions& options, ParameterState& state) {
  if (is_fused(options)) check_fused(optimizer_name(), parameter);
  const auto zeros = [&] { return at::zeros_like(parameter, {}, at::MemoryFormat::Preserve); };
  try {
    create_state(parameter, state, kStep, at::zeros({}, step_options(parameter, options)));
    create_state(parameter, state, kExpAvg, zeros());
    create_state(parameter, state, kExpAvgSq, zeros());
    if (options.amsgrad) create_state(parameter, state, kMaxExpAvgSq, zeros());
  } catch (...) {
    state.clear();  // Partial state would look complete in the next step.
    throw;
  }
}

void Adam::update_group(std::size_t group) {
  const AdamOptions& options = this->options(group);
  AdamLists lists;
  for (const at::Tensor& parameter : parameter_groups()[group]) {
    const at::Tensor& gradient = parameter.grad();
    if (!gradient.defined()) continue;
    TORCH_CHECK(!gradient.is_sparse(), optimizer_name(), " steps dense gradients, but that of a parameter of shape ",
                parameter.sizes(), " is sparse: make it dense, or use SGD for the group");
    ParameterState& state = state_of(parameter);
    if (state.empty()) create_states(parameter, options, state);
    lists.parameters.push_back(parameter);
    lists.gradients.push_back(gradient);
    lists.exp_avgs.push_back(find_state(state, kExpAvg));
    lists.exp_avg_sqs.push_back(find_state(state, kExpAvgSq));
    lists.steps.push_back(find_state(state, kStep));
    if (options.amsgrad) {
      lists.max_exp_avg_sqs.push_back(find_state(state, kMaxExpAvgSq));
      TORCH_CHECK(lists.max_exp_avg_sqs.back().defined(), "amsgrad was switched on for group ", group, " of ",
                  optimizer_name(), " after a parameter of shape ", parameter.sizes(),
                  " had been stepped without it: choose it before the first step");
    }
  }
  switch (choose_implementation(options.implementation, lists.parameters)) {
    case Implementation::kFused:
      return adam_fused(lists, options);
    case Implementation::kForeach:
      return adam_foreach(lists, options);
    default:
      return adam_for_loop(lists, options);
  }
}

std::vector<Optimizer::StateSlot> Adam::state_slots(std::size_t group, const at::Tensor& parameter) const {
  const AdamOptions& options = this->options(group);
  std::vector<StateSlot> slots = {{kStep, {}, step_options(parameter, options)},
                                  {kExpAvg, parameter.sizes().vec(), parameter.options()},
                                  {kExpAvgSq, parameter.sizes().vec(), parameter.options()}};
  if (options.amsgrad) slots.push_back({kMaxExpAvgSq, parameter.sizes().vec(), parameter.options()});
  return slots;
}

}  // namespace plimsoll::nn
