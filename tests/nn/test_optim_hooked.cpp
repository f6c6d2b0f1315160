#include <ATen/Functions.h>
#include <doctest/doctest.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "plimsoll/nn/optim/hooked_optimizer.h"

namespace test_optim_hooked {

using namespace plimsoll::nn;

namespace {

using Names = std::vector<std::string>;

at::Tensor parameter() {
  at::Tensor tensor = at::ones({3}).set_requires_grad(true);
  tensor.mutable_grad() = at::ones({3});
  return tensor;
}

Names states(const StepObservable& optimizer) {
  Names names;
  optimizer.for_each_state([&](const at::Tensor&, std::string_view name, const at::Tensor& state) {
    CHECK(state.sizes() == at::IntArrayRef({3}));
    names.emplace_back(name);
  });
  return names;
}

template <class Stock, class Options>
Names states_after_a_step(const Options& options) {
  HookedOptimizer<Stock> optimizer(std::vector<at::Tensor>{parameter()}, options);
  optimizer.step();
  return states(optimizer);
}

}  // namespace

TEST_CASE("the state of torch's own optimizers has its Python names") {
  namespace stock = torch::optim;
  CHECK(states_after_a_step<stock::Adam>(stock::AdamOptions()) == Names{"exp_avg", "exp_avg_sq"});
  CHECK(states_after_a_step<stock::Adam>(stock::AdamOptions().amsgrad(true)) ==
        Names{"exp_avg", "exp_avg_sq", "max_exp_avg_sq"});
  CHECK(states_after_a_step<stock::AdamW>(stock::AdamWOptions()) == Names{"exp_avg", "exp_avg_sq"});
  CHECK(states_after_a_step<stock::SGD>(stock::SGDOptions(0.1)) == Names{});
  CHECK(states_after_a_step<stock::SGD>(stock::SGDOptions(0.1).momentum(0.5)) == Names{"momentum_buffer"});
  CHECK(states_after_a_step<stock::RMSprop>(stock::RMSpropOptions().momentum(0.5).centered(true)) ==
        Names{"square_avg", "momentum_buffer", "grad_avg"});
  CHECK(states_after_a_step<stock::Adagrad>(stock::AdagradOptions()) == Names{"sum"});
}

TEST_CASE("hooks see the step of torch's own optimizer, also through its base class, and the step is unchanged") {
  const at::Tensor a = parameter(), b = parameter();
  HookedOptimizer<torch::optim::SGD> optimizer(
      std::vector<torch::optim::OptimizerParamGroup>{std::vector<at::Tensor>{a}, std::vector<at::Tensor>{b}},
      torch::optim::SGDOptions(0.5));
  Names order;
  auto before = register_global_step_pre_hook([&](StepObservable& which) {
    order.push_back("before " + which.optimizer_name());
    CHECK(which.parameters().size() == 2);
  });
  auto after = register_global_step_post_hook([&](StepObservable&) { order.push_back("after"); });
  optimizer.register_step_pre_hook([&](StepObservable&) { order.push_back("own"); });
  torch::optim::Optimizer& base = optimizer;
  const at::Tensor loss = base.step([] { return at::full({}, 7); });
  before.remove();
  after.remove();
  CHECK(order == Names{"before SGD", "own", "after"});
  CHECK(loss.item().toDouble() == 7);
  CHECK(a[0].item().toDouble() == 0.5);
  CHECK(b[0].item().toDouble() == 0.5);
}

TEST_CASE("state hooks get each tensor that a step of torch's own optimizer created, once, before the post-hooks") {
  HookedOptimizer<torch::optim::AdamW> optimizer(std::vector<at::Tensor>{parameter()}, torch::optim::AdamWOptions());
  Names reported;
  auto state = register_global_state_hook([&](StepObservable&, const at::Tensor&, std::string_view name,
                                              const at::Tensor&) { reported.emplace_back(name); });
  optimizer.register_step_post_hook([&](StepObservable&) { reported.push_back("after"); });
  optimizer.step();
  CHECK(reported == Names{"exp_avg", "exp_avg_sq", "after"});
  optimizer.step();
  state.remove();
  CHECK(reported == Names{"exp_avg", "exp_avg_sq", "after", "after"});
}

TEST_CASE("state hooks get the tensors that a step created before it threw") {
  const at::Tensor sparse = parameter();
  sparse.mutable_grad() = at::ones({3}).to_sparse();
  HookedOptimizer<torch::optim::Adam> optimizer(std::vector<at::Tensor>{parameter(), sparse},
                                                torch::optim::AdamOptions());
  int reported = 0, always = 0;
  auto state = register_global_state_hook(
      [&](StepObservable&, const at::Tensor&, std::string_view, const at::Tensor&) { ++reported; });
  optimizer.register_step_post_hook([&](StepObservable&) { ++always; }, {.always_call = true});
  CHECK_THROWS(optimizer.step());
  state.remove();
  CHECK(reported == 2);
  CHECK(always == 1);
}

}  // namespace test_optim_hooked
