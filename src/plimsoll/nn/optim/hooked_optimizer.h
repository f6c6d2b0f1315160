#pragma once

#include <torch/optim/optimizer.h>

#include <string>
#include <utility>
#include <vector>

#include "plimsoll/nn/optim/step_observable.h"

namespace plimsoll::nn {

/// Visits the state tensors of an optimizer of torch::optim by parameter, under their Python names. Supports Adam,
/// AdamW, SGD, RMSprop and Adagrad; visits nothing for others. ("step" is a number there, not a tensor.)
void for_each_stock_state(const torch::optim::Optimizer& optimizer, const StateVisitor& visit);

/// The parameters of all its groups.
std::vector<at::Tensor> stock_parameters(const torch::optim::Optimizer& optimizer);

/// "AdamW" for torch::optim::AdamW, of any optimizer class.
std::string stock_name(const std::type_info& type);

/// A set of existing state tensors, to find new ones later. Does not keep their memory alive.
class StockStateMark {
 public:
  explicit StockStateMark(const torch::optim::Optimizer& optimizer);

  /// Calls `visit` for the state tensors that are newer than the mark.
  void for_each_new(const torch::optim::Optimizer& optimizer, const StateVisitor& visit) const;

 private:
  std::vector<c10::weak_intrusive_ptr<at::TensorImpl, at::UndefinedTensorImpl>> there_;
};

/// An optimizer of torch::optim with step hooks: declare `HookedOptimizer<torch::optim::AdamW> optimizer(…)`, with the
/// arguments of torch::optim::AdamW. `parameters()` returns those of all groups.
template <class Stock>
class HookedOptimizer : public Stock, public StepObservable {
 public:
  using Stock::Stock;

  at::Tensor step(torch::optim::Optimizer::LossClosure closure = nullptr) override {
    at::Tensor loss;
    observe_step([&] { loss = observed_step(std::move(closure)); });
    return loss;
  }

  std::string optimizer_name() const override { return stock_name(typeid(Stock)); }
  std::vector<at::Tensor> parameters() const override { return stock_parameters(*this); }
  void for_each_state(const StateVisitor& visit) const override { for_each_stock_state(*this, visit); }

 private:
  at::Tensor observed_step(torch::optim::Optimizer::LossClosure closure) {
    if (!has_state_hooks()) return Stock::step(std::move(closure));
    const StockStateMark mark(*this);
    const auto report = [&] {
      mark.for_each_new(*this, [&](const at::Tensor& parameter, std::string_view name, const at::Tensor& state) {
        report_state(parameter, name, state);
      });
    };
    at::Tensor loss;
    try {
      loss = Stock::step(std::move(closure));
    } catch (...) {
      report();
      throw;
    }
    report();
    return loss;
  }
};

}  // namespace plimsoll::nn
