#include <ATen/Functions.h>
#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "nn/error_text.h"
#include "plimsoll/nn/optim/adam.h"
#include "plimsoll/nn/optim/sgd.h"

using namespace plimsoll::nn;

namespace {

std::vector<at::Tensor> two_parameters(at::ScalarType dtype = at::kFloat) {
  std::vector<at::Tensor> parameters = {at::ones({2, 3}, dtype), at::ones({4}, dtype)};
  for (at::Tensor& parameter : parameters) parameter.set_requires_grad(true);
  return parameters;
}

void step(Optimizer& optimizer, double gradient) {
  for (const at::Tensor& parameter : optimizer.parameters())
    parameter.mutable_grad() = at::full_like(parameter, gradient);
  optimizer.step();
}

std::string import_error(Optimizer& optimizer, const OptimizerState& state) {
  return error_text([&] { optimizer.import_state(state); });
}

}  // namespace

TEST_CASE("states are listed by parameter and in order of creation, and only existing ones") {
  const auto parameters = two_parameters();
  Adam optimizer(parameters);
  parameters[1].mutable_grad() = at::ones({4});
  optimizer.step();
  std::vector<std::string> names;
  optimizer.for_each_state([&](const at::Tensor& parameter, std::string_view name, const at::Tensor& state) {
    CHECK(parameter.is_same(parameters[1]));
    CHECK(state.sizes() == (name == "step" ? at::IntArrayRef() : at::IntArrayRef({4})));
    names.emplace_back(name);
  });
  CHECK(names == std::vector<std::string>{"step", "exp_avg", "exp_avg_sq"});
  parameters[0].mutable_grad() = at::ones({2, 3});
  optimizer.step();
  const OptimizerState all = optimizer.export_state();
  CHECK(all.entries.size() == 6);
  CHECK(all.entries[0].parameter == 0);
  CHECK(all.entries[0].tensor.item().toDouble() == 1);
  CHECK(all.entries[3].tensor.item().toDouble() == 2);
}

TEST_CASE("state stays with a parameter if its data is replaced") {
  const auto parameters = two_parameters();
  SGD optimizer(parameters, {.momentum = 0.5});
  step(optimizer, 1);
  parameters[0].set_data(at::zeros({2, 3}));
  step(optimizer, 1);
  CHECK(optimizer.export_state().entries.size() == 2);
}

TEST_CASE("an optimizer that imports another's state continues like it, and shares nothing with it") {
  const auto ours = two_parameters(), theirs = two_parameters();
  Adam original(ours, {.amsgrad = true}), copy(theirs, {.amsgrad = true});
  step(original, 0.25);
  copy.import_state(original.export_state());
  for (std::size_t i = 0; i < ours.size(); ++i) theirs[i].data().copy_(ours[i]);
  const OptimizerState before = copy.export_state();
  CHECK(!before.entries[1].tensor.is_alias_of(original.export_state().entries[1].tensor));
  for (int i = 0; i < 2; ++i) {
    step(original, 0.5);
    step(copy, 0.5);
  }
  for (std::size_t i = 0; i < ours.size(); ++i) CHECK(at::equal(ours[i], theirs[i]));
}

TEST_CASE("imported state takes the parameter's dtype, except the step count") {
  Adam original(two_parameters()), copy(two_parameters(at::kBFloat16));
  step(original, 0.25);
  copy.import_state(original.export_state());
  copy.for_each_state([](const at::Tensor&, std::string_view name, const at::Tensor& state) {
    CHECK((state.scalar_type() == (name == "step" ? at::kFloat : at::kBFloat16)));
  });
}

TEST_CASE("an import calls state hooks") {
  Adam original(two_parameters()), copy(two_parameters());
  step(original, 0.25);
  int reported = 0;
  auto handle = register_global_state_hook([&](StepObservable& which, const at::Tensor&, std::string_view,
                                               const at::Tensor&) { reported += &which == &copy; });
  copy.import_state(original.export_state());
  handle.remove();
  CHECK(reported == 6);
}

TEST_CASE("state that does not fit is refused by name, and changes nothing") {
  Adam optimizer(two_parameters());
  step(optimizer, 0.25);
  const OptimizerState good = optimizer.export_state();

  OptimizerState state = good;
  state.parameter_count = 3;
  CHECK(import_error(optimizer, state) ==
        "the state to import is of 3 parameters, but this Adam has 2: build it from the same parameters, in the same "
        "order, as the one that the state was exported from");

  state = good;
  state.entries[5].parameter = 2;
  CHECK(import_error(optimizer, state) ==
        "the state to import names parameter 2 ('exp_avg_sq'), but this Adam has 2, counted from 0");

  state = good;
  state.entries[1].tensor.reset();
  CHECK(import_error(optimizer, state) ==
        "the state 'exp_avg' of parameter 0 to import is an undefined tensor; leave it out, or give its value");

  state = good;
  state.entries.push_back(good.entries[4]);
  CHECK(import_error(optimizer, state) == "the state to import has 'exp_avg' of parameter 1 twice");

  state = good;
  state.entries.pop_back();
  CHECK(import_error(optimizer, state) ==
        "the state to import lacks 'exp_avg_sq' of parameter 1, which Adam keeps with these options: export from an "
        "optimizer of the same kind and options");

  state = good;
  state.entries[1].tensor = at::zeros({3, 2});
  CHECK(import_error(optimizer, state) ==
        "the state 'exp_avg' of parameter 0 to import has shape [3, 2], but Adam expects [2, 3]");

  state = good;
  state.entries.push_back({0, "momentum_buffer", at::zeros({2, 3})});
  CHECK(import_error(optimizer, state) ==
        "the state to import has 'momentum_buffer' of parameter 0, which Adam does not keep with these options: export "
        "from an "
        "optimizer of the same kind and options");

  const OptimizerState after = optimizer.export_state();
  CHECK(after.entries.size() == good.entries.size());
  for (std::size_t i = 0; i < good.entries.size(); ++i) CHECK(after.entries[i].tensor.is_same(good.entries[i].tensor));
}

TEST_CASE("SGD keeps state only with momentum, and refuses a buffer without it") {
  SGD with(two_parameters(), {.momentum = 0.5}), without(two_parameters());
  step(with, 1);
  step(without, 1);
  CHECK(with.export_state().entries.size() == 2);
  CHECK(without.export_state().entries.empty());
  CHECK(import_error(without, with.export_state()) ==
        "the state to import has 'momentum_buffer' of parameter 0, which SGD does not keep with these options: export "
        "from an "
        "optimizer of the same kind and options");
}
