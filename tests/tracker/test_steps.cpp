#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "plimsoll/nn/optim/adamw.h"
#include "plimsoll/nn/optim/sgd.h"
#include "plimsoll/tracker/mem_tracker.h"
#include "tracker/looking.h"
#include "tracker/models.h"

namespace plimsoll::test_steps {

namespace {

void train_step(models::MLP& model, nn::Optimizer& optimizer, const at::Tensor& batch) {
  model(batch).square().mean().backward();
  optimizer.step();
  optimizer.zero_grad();
}

}  // namespace

TEST_CASE("the peak of each step equals the peak of a tracker that saw only this step") {
  models::MLP model(8, 64, 4);
  nn::SGD optimizer(model->parameters(), {.lr = 0.1, .momentum = 0.9});
  MemTracker tracker;
  tracker.track_external(model, optimizer);
  std::vector<Snapshot> alone;
  {
    const auto scope = tracker.enter();
    for (const int rows : {2, 40, 7, 19}) {
      MemTracker of_step;
      of_step.track_external(model, optimizer);
      const auto batch = at::ones({rows, 8});
      const auto inner = of_step.enter();
      train_step(model, optimizer, batch);
      alone.push_back(of_step.snapshot(SnapshotKind::kPeak));
    }
  }
  const auto steps = tracker.step_peaks();
  REQUIRE(steps.size() == 4);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    CHECK(steps[i].step == static_cast<std::int64_t>(i));
    CHECK(steps[i].peak.at("cpu").total() == alone[i].at("cpu").total());
    CHECK(steps[i].peak.at("cpu")["Parameter"] == alone[i].at("cpu")["Parameter"]);
  }
  CHECK(steps[1].peak.at("cpu").total() > steps[3].peak.at("cpu").total());
  CHECK(tracker.snapshot(SnapshotKind::kPeak) == steps[1].peak);
}

TEST_CASE("the highest phase of a step is its peak") {
  models::MLP model(8, 64, 4);
  nn::AdamW optimizer(model->parameters(), {.implementation = nn::Implementation::kForeach});
  MemTracker tracker;
  tracker.track_external(model, optimizer);
  const auto scope = tracker.enter();
  train_step(model, optimizer, at::ones({4, 8}));
  train_step(model, optimizer, at::ones({64, 8}));
  const auto phases = tracker.phase_peaks();
  for (const auto* name : {"forward", "backward", "optimizer", "other"}) CHECK(phases.contains(name));
  std::int64_t highest = 0;
  for (const auto& [name, peak] : phases) highest = std::max(highest, peak.at("cpu").total());
  CHECK(highest == tracker.step_peaks().back().peak.at("cpu").total());
  CHECK(phases.at("forward").at("cpu")["Gradient"] == 0);
  CHECK(phases.at("forward").at("cpu")["Optstate"] > 0);
  CHECK(phases.at("optimizer").at("cpu")["Gradient"] == phases.at("optimizer").at("cpu")["Parameter"]);
  CHECK(phases.at("optimizer").at("cpu")["Temp"] > 0);  // foreach needs them.
}

TEST_CASE("the tracker keeps the latest step of a module") {
  models::MLP model(8, 16, 4);
  nn::SGD optimizer(model->parameters(), {.lr = 0.1});
  MemTracker tracker;
  tracker.track_external(model);
  const auto scope = tracker.enter();
  train_step(model, optimizer, at::ones({2, 8}));
  const auto first = tracker.module_stats("MLP.fc1");
  train_step(model, optimizer, at::ones({20, 8}));
  const auto second = tracker.module_stats("MLP.fc1");
  for (const auto state : {ModuleState::kPreForward, ModuleState::kPostForward, ModuleState::kPeakForward,
                           ModuleState::kPreBackward, ModuleState::kPostBackward, ModuleState::kPeakBackward}) {
    CHECK(calls(first, state) == 1);
    CHECK(calls(second, state) == 1);
  }
  CHECK(first.input_bytes == 2 * 8 * 4);
  CHECK(second.input_bytes == 20 * 8 * 4);
  CHECK(second.output_bytes == 20 * 16 * 4);
  CHECK(second.local_peak.at("cpu") > first.local_peak.at("cpu"));
  CHECK(second.local_peak.at("cpu") == second.snapshots.at(ModuleState::kPeakBackward)[0].at("cpu").total());
}

TEST_CASE("two passes before an optimizer's step are one step, of two calls each") {
  models::MLP model(8, 16, 4);
  nn::SGD optimizer(model->parameters(), {.lr = 0.1});
  const auto batch = at::ones({2, 8});
  MemTracker tracker;
  tracker.track_external(model, batch);
  const auto scope = tracker.enter();
  model(batch).sum().backward();
  model(batch).sum().backward();
  const auto stats = tracker.module_stats("MLP.fc2");
  REQUIRE(calls(stats, ModuleState::kPreForward) == 2);
  REQUIRE(calls(stats, ModuleState::kPostBackward) == 2);
  const auto& before = stats.snapshots.at(ModuleState::kPreForward);
  CHECK(before[0].at("cpu")["Gradient"] == 0);
  CHECK(before[1].at("cpu")["Gradient"] == before[1].at("cpu")["Parameter"]);
  CHECK(tracker.step_peaks().size() == 1);
  optimizer.step();
  model(batch).sum().backward();
  CHECK(tracker.step_peaks().size() == 2);
  CHECK(calls(tracker.module_stats("MLP.fc2"), ModuleState::kPreForward) == 1);
}

TEST_CASE("two forward passes before either backward end each with their own") {
  models::MLP model(8, 16, 4);
  const auto batch = at::ones({2, 8});
  MemTracker tracker;
  tracker.track_external(model);
  std::vector<std::string> ended;
  tracker.register_user_hooks({.post_backward = [&](auto*, const auto& fqn, const auto&) { ended.push_back(fqn); }});
  const auto scope = tracker.enter();
  auto first = model(batch).sum(), second = model(batch).sum();
  const std::vector<std::string> all{"MLP.fc2", "MLP.act", "MLP.fc1", "MLP"};
  second.backward();
  CHECK(ended == all);
  CHECK(tracker.parents() == std::set<std::string>{"Global"});
  ended.clear();
  first.backward();
  CHECK(ended == all);
}

TEST_CASE("the tracker does not grow with steps") {
  models::MLP model(8, 16, 4);
  nn::AdamW optimizer(model->parameters());
  const auto batch = at::ones({2, 8});
  MemTracker tracker({.steps = 4});
  tracker.track_external(model, batch);
  MemTracker::Footprint early;
  std::size_t hooks_early = 0;
  const auto hooks = [&] {
    std::size_t count = 0;
    for (const auto& hook : torch::autograd::impl::hooks(model->fc1->weight)) count += hook != nullptr ? 1 : 0;
    return count;
  };
  for (int step = 0; step < 400; ++step) {
    const auto scope = tracker.enter();
    train_step(model, optimizer, batch);
    if (step == 199) {
      early = tracker.footprint();
      hooks_early = hooks();
    }
  }
  const auto late = tracker.footprint();
  CHECK(late.ledger_bytes == early.ledger_bytes);
  CHECK(late.entries <= 4 * 4096);
  CHECK(hooks() == hooks_early);
  CHECK(tracker.step_peaks().size() == 5);
}

TEST_CASE("passes without an optimizer's step do not collect descriptions of dead memory") {
  models::MLP model(8, 16, 4);
  MemTracker tracker;
  const auto scope = tracker.enter();
  for (int pass = 0; pass < 4000; ++pass) {
    const at::NoGradGuard no_gradients;
    model(at::ones({2, 8}));
    if (pass % 50 == 0) tracker.reset_mod_stats();
  }
  CHECK(tracker.footprint().entries < 2 * 4096);
}

}  // namespace plimsoll::test_steps
