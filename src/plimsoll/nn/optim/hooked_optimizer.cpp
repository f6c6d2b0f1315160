#include "plimsoll/nn/optim/hooked_optimizer.h"

#include <c10/util/Type.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <unordered_set>

namespace plimsoll::nn {
namespace {

/// Visits the tensors of one parameter's state; undefined ones are state that its options do not use.
class StockState {
 public:
  StockState(const at::Tensor& parameter, const StateVisitor& visit) : parameter_(parameter), visit_(visit) {}

  void visit(const torch::optim::OptimizerParamState& state) const {
    visit_as<torch::optim::AdamParamState>(state) || visit_as<torch::optim::AdamWParamState>(state) ||
        visit_as<torch::optim::SGDParamState>(state) || visit_as<torch::optim::RMSpropParamState>(state) ||
        visit_as<torch::optim::AdagradParamState>(state);
  }

 private:
  template <class State>
  bool visit_as(const torch::optim::OptimizerParamState& state) const {
    const auto* found = dynamic_cast<const State*>(&state);
    if (found == nullptr) return false;
    if constexpr (requires { found->exp_avg_sq(); }) {
      named("exp_avg", found->exp_avg());
      named("exp_avg_sq", found->exp_avg_sq());
      named("max_exp_avg_sq", found->max_exp_avg_sq());
    }
    if constexpr (requires { found->square_avg(); }) {
      named("square_avg", found->square_avg());
    }
    if constexpr (requires { found->momentum_buffer(); }) {
      named("momentum_buffer", found->momentum_buffer());
    }
    if constexpr (requires { found->grad_avg(); }) {
      named("grad_avg", found->grad_avg());
    }
    if constexpr (requires { found->sum(); }) {
      named("sum", found->sum());
    }
    return true;
  }

  void named(std::string_view name, const at::Tensor& tensor) const {
    if (tensor.defined()) visit_(parameter_, name, tensor);
  }

  const at::Tensor& parameter_;
  const StateVisitor& visit_;
};

}  // namespace

void for_each_stock_state(const torch::optim::Optimizer& optimizer, const StateVisitor& visit) {
  for (const auto& group : optimizer.param_groups()) {
    for (const at::Tensor& parameter : group.params()) {
      const auto found = optimizer.state().find(parameter.unsafeGetTensorImpl());
      if (found != optimizer.state().end()) StockState(parameter, visit).visit(*found->second);
    }
  }
}

std::vector<at::Tensor> stock_parameters(const torch::optim::Optimizer& optimizer) {
  std::vector<at::Tensor> all;
  for (const auto& group : optimizer.param_groups()) {
    all.insert(all.end(), group.params().begin(), group.params().end());
  }
  return all;
}

std::string stock_name(const std::type_info& type) {
  const std::string name = c10::demangle(type.name());
  const auto colon = name.rfind("::");
  return colon == std::string::npos ? name : name.substr(colon + 2);
}

StockStateMark::StockStateMark(const torch::optim::Optimizer& optimizer) {
  for_each_stock_state(optimizer, [&](const at::Tensor&, std::string_view, const at::Tensor& state) {
    there_.emplace_back(state.getIntrusivePtr());
  });
}

void StockStateMark::for_each_new(const torch::optim::Optimizer& optimizer, const StateVisitor& visit) const {
  // A weak reference prevents reuse of the object's address, so addresses can be compared.
  std::unordered_set<const at::TensorImpl*> there;
  for (const auto& weak : there_) there.insert(weak._unsafe_get_target());
  for_each_stock_state(optimizer, [&](const at::Tensor& parameter, std::string_view name, const at::Tensor& state) {
    if (!there.contains(state.unsafeGetTensorImpl())) visit(parameter, name, state);
  });
}

}  // namespace plimsoll::nn
