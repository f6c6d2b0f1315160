#include <ATen/Functions.h>
#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "plimsoll/nn/module_contents.h"
#include "plimsoll/nn/optim/step_observable.h"
#include "plimsoll/tracker/mem_tracker.h"
#include "tracker/looking.h"

namespace plimsoll {

namespace {

/// A module of another front end: it names its tensors, and only its hooks are called.
struct Foreign final : nn::ForeignModule {
  explicit Foreign(std::string type_) : type(std::move(type_)) {}

  std::string type_name() const override { return type; }
  nn::NamedModules own_children() const override { return children_now; }
  std::vector<at::Tensor> own_parameters() const override { return parameters_now; }
  std::vector<at::Tensor> own_buffers() const override { return buffers_now; }

  template <class Forward>
  at::Tensor call(at::Tensor x, const Forward& forward) {
    nn::Tensors given, results;
    given.add(x);
    nn::HookedCall(*this, *this, given).before();
    at::Tensor y = forward(x);
    results.add(y);
    nn::HookedCall(*this, *this, given).after(results);
    return y;
  }

  std::string type;
  nn::NamedModules children_now;
  std::vector<at::Tensor> parameters_now, buffers_now;
};

std::int64_t cpu(MemTracker& tracker, std::string_view category) { return tracker.snapshot()["cpu"][category]; }

}  // namespace

TEST_CASE("a foreign module and its children get names and owners as our modules do") {
  const auto root = std::make_shared<Foreign>("Net"), layer = std::make_shared<Foreign>("Layer");
  root->children_now = {{"first", layer}};
  layer->parameters_now = {at::ones({256}).requires_grad_()};
  layer->buffers_now = {at::ones({64})};
  MemTracker tracker;
  tracker.track_external(*root);
  CHECK(cpu(tracker, "Parameter") == 1024);
  CHECK(cpu(tracker, "Buffer") == 256);
  {
    const auto scope = tracker.enter();
    const at::Tensor x = at::ones({256}).requires_grad_();
    const at::Tensor y = root->call(x, [&](const at::Tensor& in) {
      return layer->call(in, [&](const at::Tensor& inner) { return inner * layer->parameters_now[0]; });
    });
    y.sum().backward();
  }
  CHECK(cpu(tracker, "Gradient") == 1024);
  const auto stats = tracker.module_stats("Net.first");
  CHECK(stats.parameter_bytes == 1024);
  CHECK(stats.buffer_bytes == 256);
  CHECK(stats.module.lock() == layer);
  CHECK(stats.snapshots.contains(ModuleState::kPostBackward));
  const auto roots = tracker.roots();
  REQUIRE(roots.size() == 1);
  CHECK(roots[0].first == "Net");
}

TEST_CASE("new tensors of a foreign module are named") {
  const auto module = std::make_shared<Foreign>("Net");
  module->parameters_now = {at::ones({256}).requires_grad_()};
  MemTracker tracker;
  const auto scope = tracker.enter();
  const auto call = [&] { module->call(at::ones({4}), [](const at::Tensor& x) { return x + 1; }); };
  call();
  CHECK(cpu(tracker, "Parameter") == 1024);
  module->parameters_now = {};
  CHECK(cpu(tracker, "Parameter") == 0);
}

TEST_CASE("state of another front end's optimizer is state from its first instant") {
  struct ForeignOptimizer final : nn::StepObservable {
    std::string optimizer_name() const override { return "Lion"; }
    std::vector<at::Tensor> parameters() const override { return {}; }
    void for_each_state(const nn::StateVisitor&) const override {}
  } optimizer;
  MemTracker tracker;
  const auto scope = tracker.enter();
  nn::foreign_step_begins(optimizer);
  const at::Tensor temporary = at::ones({64});
  at::Tensor state;
  {
    const nn::StateCreation creation;
    state = at::ones({256});
  }
  CHECK(cpu(tracker, "Temp") == 256);
  CHECK(cpu(tracker, "Optstate") == 1024);
  nn::foreign_step_over(optimizer);
  const at::Tensor later = at::ones({16});
  CHECK(cpu(tracker, "Activation") == 64);
}

TEST_CASE("a peak without FSDP is explained by causes") {
  MemTracker tracker;
  const auto module = std::make_shared<Foreign>("Net");
  module->parameters_now = {at::ones({256}).requires_grad_()};
  tracker.track_external(*module);
  {
    const auto scope = tracker.enter();
    const at::Tensor y =
        module->call(at::ones({256}), [&](const at::Tensor& x) { return x * module->parameters_now[0]; });
  }
  const auto explanation = tracker.explain("cpu");
  std::int64_t sum = 0;
  for (const auto& cause : explanation.causes) sum += cause.bytes;
  CHECK(sum == explanation.total);
  CHECK_THROWS_WITH_AS(tracker.explain("cuda:7"),
                       doctest::Contains("nothing was seen of cuda:7 yet, and so there is nothing to explain"),
                       c10::Error);
}

}  // namespace plimsoll
