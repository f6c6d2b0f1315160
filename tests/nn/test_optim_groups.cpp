#include <ATen/Functions.h>
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "nn/error_text.h"
#include "plimsoll/nn/optim/adamw.h"
#include "plimsoll/nn/optim/sgd.h"

namespace test_optim_groups {

using namespace plimsoll::nn;

namespace {

at::Tensor parameter(double value = 1) {
  at::Tensor tensor = at::full({2}, value).set_requires_grad(true);
  tensor.mutable_grad() = at::ones({2});
  return tensor;
}

double first(const at::Tensor& tensor) { return tensor[0].item().toDouble(); }

}  // namespace

TEST_CASE("each group steps with its own options, or with the defaults") {
  const at::Tensor a = parameter(), b = parameter(), c = parameter();
  SGD optimizer(std::vector<SGD::Group>{{{a}}, {{b}, SGDOptions{.lr = 0.25}}}, {.lr = 0.5});
  optimizer.add_param_group({.parameters = {c}, .options = SGDOptions{.lr = 1}});
  optimizer.step();
  CHECK(first(a) == 0.5);
  CHECK(first(b) == 0.75);
  CHECK(first(c) == 0);
  CHECK(optimizer.parameters().size() == 3);
  CHECK(optimizer.parameter_groups()[2][0].is_same(c));
  optimizer.options(0).lr = 0;
  optimizer.step();
  CHECK(first(a) == 0.5);
  CHECK(first(b) == 0.5);
  CHECK(optimizer.defaults().lr == 0.5);
}

TEST_CASE("a group of AdamW with AdamWOptions has decoupled weight decay") {
  AdamW optimizer(std::vector<AdamW::Group>{{{parameter()}, AdamWOptions{.lr = 0.5}}});
  CHECK(optimizer.options(0).decoupled_weight_decay);
  CHECK(optimizer.options(0).weight_decay == 0.01);
  CHECK(optimizer.optimizer_name() == "AdamW");
}

TEST_CASE("a step with a closure computes the loss with gradients and returns it") {
  const at::Tensor weight = parameter();
  SGD optimizer({weight}, {.lr = 0.5});
  const at::NoGradGuard without_gradients;
  const at::Tensor loss = optimizer.step([&] {
    optimizer.zero_grad();
    at::Tensor sum = weight.mul(3).sum();
    sum.backward();
    return sum;
  });
  CHECK(loss.item().toDouble() == 6);
  CHECK(first(weight) == -0.5);
}

TEST_CASE("zero_grad drops gradients, or fills them with zeros in place") {
  for (const auto form : {Implementation::kDefault, Implementation::kForeach, Implementation::kFused}) {
    const at::Tensor a = parameter(), b = parameter();
    b.mutable_grad().reset();
    SGD optimizer({a, b}, {.implementation = form});
    const at::Tensor gradient = a.grad();
    optimizer.zero_grad(/*set_to_none=*/false);
    CHECK(a.grad().is_same(gradient));
    CHECK(first(gradient) == 0);
    CHECK(!b.grad().defined());
    optimizer.zero_grad();
    CHECK(!a.grad().defined());
  }
}

TEST_CASE("zero_grad in place detaches a gradient from its graph") {
  const at::Tensor a = parameter();
  const at::Tensor factor = at::ones({2}).set_requires_grad(true);
  a.mutable_grad() = factor * 2;
  SGD({a}).zero_grad(/*set_to_none=*/false);
  CHECK(!a.grad().requires_grad());
}

TEST_CASE("an optimizer without parameters is refused") {
  const std::string expected =
      "an optimizer needs at least one parameter, found none; pass module->parameters() after the module's submodules "
      "are registered";
  CHECK(error_text([] { SGD(std::vector<at::Tensor>()); }) == expected);
  CHECK(error_text([] { SGD(std::vector<SGD::Group>()); }) == expected);
}

TEST_CASE("an undefined parameter is refused by its number") {
  CHECK(error_text([] { SGD({parameter(), at::Tensor()}); }) ==
        "parameter 1 of the optimizer is undefined; leave out parameters that the module does not have");
}

TEST_CASE("a parameter that is not a leaf is refused unless it retains its gradient") {
  const at::Tensor computed = parameter().exp();
  CHECK(error_text([&] { SGD({computed}); }) ==
        "parameter 0 of the optimizer, of shape [2], is the result of an operation (ExpBackward0): only leaves have "
        "gradients to step with. Pass the tensor that it was computed from, or detach it");
  computed.retain_grad();
  CHECK(error_text([&] { SGD({computed}); }).empty());
}

TEST_CASE("a parameter given twice is refused, within a group and across groups, and the optimizer is unchanged") {
  const at::Tensor shared = parameter();
  const std::string expected =
      "parameter 2 of the optimizer, of shape [2], is the same tensor as parameter 0 and would be stepped twice: pass "
      "a "
      "shared parameter once";
  CHECK(error_text([&] { SGD({shared, parameter(), shared}); }) == expected);
  SGD optimizer({shared, parameter()});
  CHECK(error_text([&] { optimizer.add_param_group({{shared}}); }) == expected);
  CHECK(optimizer.parameters().size() == 2);
  optimizer.step();
}

}  // namespace test_optim_groups
