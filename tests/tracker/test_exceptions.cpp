#include <doctest/doctest.h>

#include <set>
#include <stdexcept>
#include <string>

#include "plimsoll/nn/optim/sgd.h"
#include "plimsoll/tracker/mem_tracker.h"
#include "tracker/looking.h"
#include "tracker/models.h"

namespace plimsoll {

namespace {

enum class Fails { kNever, kInForward, kInBackward };

struct FragileImpl : torch::nn::Module {
  Fails fails = Fails::kNever;

  at::Tensor forward(at::Tensor x) {
    x = x * 2;
    if (fails == Fails::kInForward) throw std::runtime_error("forward broke");
    if (fails == Fails::kInBackward)
      x.register_hook([](const at::Tensor&) -> void { throw std::runtime_error("backward broke"); });
    return x;
  }
};
TORCH_MODULE_IMPL(Fragile, nn::Hooked<FragileImpl>);

struct NetImpl : torch::nn::Module {
  nn::Linear first{nullptr}, last{nullptr};
  Fragile fragile{nullptr};

  NetImpl() {
    first = register_module("first", nn::Linear(8, 16));
    fragile = register_module("fragile", Fragile());
    last = register_module("last", nn::Linear(16, 4));
  }
  at::Tensor forward(at::Tensor x) { return last(fragile(first(x))); }
};
TORCH_MODULE_IMPL(Net, nn::Hooked<NetImpl>);

const std::set<std::string> kNothingRuns{"Global"};

struct Trained {
  MemTracker tracker;
  ExpectedCpuTotal expected{tracker};
  Net model;
  at::Tensor batch = at::ones({2, 8});
  nn::SGD optimizer{model->parameters(), {.lr = 0.1}};

  Trained() { tracker.track_external(model, batch); }

  void step() {
    model(batch).sum().backward();
    optimizer.step();
    optimizer.zero_grad();
  }
  /// The latest of each state of each module.
  std::string latest() {
    std::string found;
    for (const auto& module : tracker.module_stats()) {
      for (const auto& [state, snapshots] : module.snapshots) {
        found += module.fqn + " " + std::string(ledger::name(state)) + " " + to_json(snapshots.back()) + "\n";
      }
    }
    return found;
  }
  /// Memory that is made now has no owner, and is Activation.
  void check_idle() {
    CHECK(tracker.parents() == kNothingRuns);
    CHECK(total(tracker) == expected());
    const auto large = at::empty({1 << 20}, at::kByte);
    const auto alive = tracker.alive_at_peak("cpu");
    REQUIRE_FALSE(alive.empty());
    CHECK(alive[0].bytes == 1 << 20);
    CHECK(alive[0].category == "Activation");
    CHECK(alive[0].owner == "");
  }
};

}  // namespace

TEST_CASE("a forward that throws leaves the tracker unchanged, and the next step is as usual") {
  Trained trained;
  const auto scope = trained.tracker.enter();
  trained.step();
  const auto expected = trained.latest();
  trained.model->fragile->fails = Fails::kInForward;
  CHECK_THROWS_WITH(trained.step(), "forward broke");
  trained.check_idle();
  trained.model->fragile->fails = Fails::kNever;
  trained.optimizer.zero_grad();
  trained.step();
  CHECK(trained.latest() == expected);
  CHECK(trained.tracker.parents() == kNothingRuns);
}

TEST_CASE("a backward that throws leaves the tracker unchanged, and the next step is as usual") {
  Trained trained;
  const auto scope = trained.tracker.enter();
  trained.step();
  const auto expected = trained.latest();
  trained.model->fragile->fails = Fails::kInBackward;
  CHECK_THROWS_WITH_AS(trained.step(), doctest::Contains("backward broke"), std::exception);
  trained.optimizer.zero_grad();
  trained.check_idle();
  trained.model->fragile->fails = Fails::kNever;
  trained.step();
  CHECK(trained.latest() == expected);
  CHECK(trained.tracker.parents() == kNothingRuns);
}

TEST_CASE("an optimizer that throws leaves the tracker unchanged") {
  Trained trained;
  const auto scope = trained.tracker.enter();
  trained.step();
  const auto expected = trained.latest();
  SUBCASE("in a hook before the step") {
    auto handle = trained.optimizer.register_step_pre_hook([](auto&) { throw std::runtime_error("step broke"); });
    CHECK_THROWS_WITH(trained.step(), "step broke");
    handle.remove();
  }
  SUBCASE("in a hook after the step") {
    auto handle = trained.optimizer.register_step_post_hook([](auto&) { throw std::runtime_error("step broke"); });
    CHECK_THROWS_WITH(trained.step(), "step broke");
    handle.remove();
  }
  SUBCASE("in the closure") {
    CHECK_THROWS_WITH(trained.optimizer.step([]() -> at::Tensor { throw std::runtime_error("step broke"); }),
                      "step broke");
  }
  SUBCASE("in the closure's forward") {
    trained.model->fragile->fails = Fails::kInForward;
    CHECK_THROWS_WITH(trained.optimizer.step([&] { return trained.model(trained.batch).sum(); }), "forward broke");
    trained.model->fragile->fails = Fails::kNever;
  }
  trained.optimizer.zero_grad();
  trained.check_idle();
  trained.step();
  CHECK(trained.latest() == expected);
}

TEST_CASE("a user hook that throws before a forward leaves other trackers balanced") {
  MemTracker first, second;
  models::MLP model(8, 16, 4);
  const auto batch = at::ones({2, 8});
  const auto scope_first = first.enter(), scope_second = second.enter();
  // The second tracker sees the end without the beginning.
  first.register_user_hooks({.pre_forward = [](torch::nn::Module& module, auto&) {
    if (nn::class_name(module) == "ReLU") throw std::runtime_error("no ReLU");
  }});
  CHECK_THROWS_WITH(static_cast<void>(model(batch)), "no ReLU");
  CHECK(first.parents() == kNothingRuns);
  CHECK(second.parents() == kNothingRuns);
  first.clear_user_hooks();
  model(batch).sum().backward();
  CHECK(second.module_stats("MLP.act").snapshots.at(ModuleState::kPreForward).size() == 1);
  CHECK(second.module_stats("MLP.act").snapshots.at(ModuleState::kPostForward).size() == 1);
  CHECK(first.snapshot().at("cpu").total() == second.snapshot().at("cpu").total());
}

TEST_CASE("an exception that ends the scope ends the tracking") {
  Trained trained;
  trained.model->fragile->fails = Fails::kInForward;
  const auto fail = [&] {
    const auto scope = trained.tracker.enter();
    trained.step();
  };
  CHECK_THROWS_WITH(fail(), "forward broke");
  const auto outside = at::empty({64}, at::kByte);
  CHECK(bytes_of(trained.tracker, "Activation") == 0);
  CHECK(bytes_of(trained.tracker, "Other") == 64 + 2 * 8 * 4);
  trained.model->fragile->fails = Fails::kNever;
  const auto scope = trained.tracker.enter();
  trained.step();
  CHECK(total(trained.tracker) == trained.expected());
}

}  // namespace plimsoll
