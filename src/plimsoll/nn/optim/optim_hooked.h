#pragma once

#include <torch/optim/optimizer.h>

#include <string>
#include <utility>
#include <vector>

#include "plimsoll/nn/optim/optim_observable.h"

namespace plimsoll::nn {

/// The state tensors that an optimizer of torch::optim holds, by parameter, under their Python names; those of Adam,
/// AdamW, SGD, RMSprop and Adagrad are known, others have none. ("step" is a number there, not a tensor.)
void for_each_stock_state(const torch::optim::Optimizer& optimizer, const StateVisitor& visit);

/// The parameters of all its groups.
std::vector<at::Tensor> stock_parameters(const torch::optim::Optimizer& optimizer);

/// "AdamW" for torch::optim::AdamW, of any optimizer class.
std::string stock_name(const std::type_info& type);

/// The state tensors there are, to tell later which ones are new. Keeps no tensor's memory alive.
class StockStateMark {
 public:
  explicit StockStateMark(const torch::optim::Optimizer& optimizer);

  /// Calls `visit` for the state tensors that were not there when the mark was made.
  void for_each_new(const torch::optim::Optimizer& optimizer, const StateVisitor& visit) const;

 private:
  std::vector<c10::weak_intrusive_ptr<at::TensorImpl, at::UndefinedTensorImpl>> there_;
};

/// An optimizer of torch::optim whose step the hooks see: declare `HookedOptimizer<torch::optim::AdamW> optimizer(…)`,
/// with the arguments of torch::optim::AdamW. `parameters()` are those of all groups.
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
