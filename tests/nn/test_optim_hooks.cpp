#include <ATen/Functions.h>
#include <c10/util/Exception.h>
#include <doctest/doctest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "plimsoll/nn/optim/adam.h"
#include "plimsoll/nn/optim/sgd.h"

using namespace plimsoll::nn;

namespace {

using Names = std::vector<std::string>;

at::Tensor parameter_with_gradient(std::int64_t numel = 3) {
  at::Tensor parameter = at::ones({numel}).set_requires_grad(true);
  parameter.mutable_grad() = at::ones({numel});
  return parameter;
}

/// Collects warnings in a scope.
class Warnings final : public c10::WarningHandler {
 public:
  void process(const c10::Warning& warning) override { messages.push_back(warning.msg()); }
  Names messages;

 private:
  c10::WarningUtils::WarningHandlerGuard guard_{this};
};

/// Removes a global hook at the end of the test.
struct Removed {
  ~Removed() { handle.remove(); }
  HookHandle handle;
};

}  // namespace

TEST_CASE("global step hooks run first before the step, and last after it") {
  SGD optimizer({parameter_with_gradient()}, {.lr = 0.5});
  Names order;
  const auto note = [&](const char* name) { return [&order, name](StepObservable&) { order.push_back(name); }; };
  const auto own_before = optimizer.register_step_pre_hook(note("own before"));
  const auto own_after = optimizer.register_step_post_hook(note("own after"));
  const Removed before{register_global_step_pre_hook(note("global before"))};
  const Removed after{register_global_step_post_hook(note("global after"))};
  optimizer.step([&] {
    order.push_back("closure");
    return at::zeros({});
  });
  CHECK(order == Names{"global before", "own before", "closure", "own after", "global after"});
}

TEST_CASE("a hook gets its optimizer and the caller's gradient mode, before and after the update") {
  const at::Tensor parameter = parameter_with_gradient();
  SGD optimizer({parameter}, {.lr = 0.5});
  std::vector<double> seen;
  const auto hook = [&](StepObservable& which) {
    CHECK(&which == &optimizer);
    CHECK(which.optimizer_name() == "SGD");
    CHECK(at::GradMode::is_enabled());
    seen.push_back(which.parameters()[0][0].item().toDouble());
  };
  optimizer.register_step_pre_hook(hook);
  optimizer.register_step_post_hook(hook);
  optimizer.step();
  CHECK(seen == std::vector<double>{1.0, 0.5});
}

TEST_CASE("a removed hook does not run, and its handle may outlive the optimizer") {
  int calls = 0;
  HookHandle kept;
  {
    SGD optimizer({parameter_with_gradient()});
    auto handle = optimizer.register_step_post_hook([&](StepObservable&) { ++calls; });
    kept = optimizer.register_step_pre_hook([&](StepObservable&) { ++calls; });
    optimizer.step();
    CHECK(calls == 2);
    handle.remove();
    optimizer.step();
    CHECK(calls == 3);
  }
  kept.remove();
}

TEST_CASE("when a step throws, only the always-called post-hooks run") {
  SGD optimizer({parameter_with_gradient()});
  Names order;
  optimizer.register_step_post_hook([&](StepObservable&) { order.push_back("plain"); });
  optimizer.register_step_post_hook([&](StepObservable&) { order.push_back("own"); }, {.always_call = true});
  const Removed global{
      register_global_step_post_hook([&](StepObservable&) { order.push_back("global"); }, {.always_call = true})};
  const Optimizer::LossClosure failing = []() -> at::Tensor { throw std::runtime_error("no loss"); };
  CHECK_THROWS_WITH_AS(optimizer.step(failing), "no loss", std::runtime_error);
  CHECK(order == Names{"own", "global"});

  order.clear();
  optimizer.step();
  CHECK(order == Names{"plain", "own", "global"});
}

TEST_CASE("a pre-hook that throws prevents the step, and always-called post-hooks run") {
  const at::Tensor parameter = parameter_with_gradient();
  SGD optimizer({parameter}, {.lr = 0.5});
  int always = 0;
  optimizer.register_step_pre_hook([](StepObservable&) { throw std::runtime_error("not now"); });
  optimizer.register_step_post_hook([&](StepObservable&) { ++always; }, {.always_call = true});
  CHECK_THROWS_WITH_AS(optimizer.step(), "not now", std::runtime_error);
  CHECK(always == 1);
  CHECK(parameter[0].item().toDouble() == 1.0);
}

TEST_CASE("a post-hook that throws does not run time, and the other always-called ones run") {
  SGD optimizer({parameter_with_gradient()});
  Names order;
  const auto throwing = [&](StepObservable&) {
    order.push_back("throws");
    throw std::runtime_error("first");
  };
  optimizer.register_step_post_hook(throwing, {.always_call = true});
  optimizer.register_step_post_hook([&](StepObservable&) { order.push_back("second"); }, {.always_call = true});
  CHECK_THROWS_WITH_AS(optimizer.step(), "first", std::runtime_error);
  CHECK(order == Names{"throws", "second"});
}

TEST_CASE("a post-hook's exception in a failed step becomes a warning") {
  SGD optimizer({parameter_with_gradient()});
  optimizer.register_step_post_hook([](StepObservable&) { throw std::runtime_error("the hook"); },
                                    {.always_call = true});
  optimizer.register_step_post_hook([](StepObservable&) { throw 7; }, {.always_call = true});
  const Optimizer::LossClosure failing = []() -> at::Tensor { throw std::runtime_error("the step"); };
  const Warnings warnings;
  CHECK_THROWS_WITH_AS(optimizer.step(failing), "the step", std::runtime_error);
  const std::string start = "a step post-hook threw while the step of SGD was failing; the step's own error is thrown.";
  CHECK(warnings.messages == Names{start + " The hook's error: the hook", start});
}

TEST_CASE("a state hook gets each state tensor once, during the step, with its Python name") {
  const at::Tensor first = parameter_with_gradient(), second = parameter_with_gradient(5);
  Adam optimizer({first, second}, {.amsgrad = true});
  bool stepping = false;
  Names reported;
  const Removed before{register_global_step_pre_hook([&](StepObservable&) { stepping = true; })};
  const Removed after{register_global_step_post_hook([&](StepObservable&) { stepping = false; })};
  const Removed state{register_global_state_hook(
      [&](StepObservable& which, const at::Tensor& parameter, std::string_view name, const at::Tensor& tensor) {
        CHECK(stepping);
        CHECK(&which == &optimizer);
        CHECK(tensor.numel() == (name == "step" ? 1 : parameter.numel()));
        reported.push_back((parameter.is_same(first) ? "0." : "1.") + std::string(name));
      })};
  optimizer.step();
  CHECK(reported == Names{"0.step", "0.exp_avg", "0.exp_avg_sq", "0.max_exp_avg_sq",  //
                          "1.step", "1.exp_avg", "1.exp_avg_sq", "1.max_exp_avg_sq"});
  optimizer.step();
  CHECK(reported.size() == 8);
}

TEST_CASE("a state hook gets momentum buffers in every form") {
  for (const auto form : {Implementation::kForLoop, Implementation::kForeach, Implementation::kFused}) {
    SGD optimizer({parameter_with_gradient(), parameter_with_gradient()}, {.momentum = 0.5, .implementation = form});
    int reported = 0;
    const Removed state{
        register_global_state_hook([&](StepObservable&, const at::Tensor&, std::string_view name, const at::Tensor&) {
          CHECK(name == "momentum_buffer");
          ++reported;
        })};
    optimizer.step();
    optimizer.step();
    CHECK(reported == 2);
  }
}

TEST_CASE("state of a failed step is created time by the next one") {
  for (const auto form : {Implementation::kForLoop, Implementation::kForeach, Implementation::kFused}) {
    Adam adam({parameter_with_gradient()}, {.implementation = form});
    SGD sgd({parameter_with_gradient(), parameter_with_gradient()}, {.momentum = 0.5, .implementation = form});
    for (Optimizer* optimizer : {static_cast<Optimizer*>(&adam), static_cast<Optimizer*>(&sgd)}) {
      {
        const Removed state{register_global_state_hook([&](StepObservable&, const at::Tensor&, std::string_view,
                                                           const at::Tensor&) { throw std::runtime_error("x"); })};
        CHECK_THROWS_AS(optimizer->step(), std::runtime_error);
      }
      CHECK(optimizer->export_state().entries.empty());
      optimizer->step();
      CHECK(optimizer->export_state().entries.size() == (optimizer == &adam ? 3 : 2));
    }
  }
}
