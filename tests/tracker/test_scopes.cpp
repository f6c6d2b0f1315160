#include <doctest/doctest.h>

#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "plimsoll/nn/optim/sgd.h"
#include "plimsoll/tracker/mem_tracker.h"
#include "tracker/looking.h"
#include "tracker/models.h"

namespace plimsoll::test_scopes {

namespace {

const std::set<std::string> kNothingRuns{"Global"};
at::Tensor bytes(std::int64_t count) { return at::empty({count}, at::kByte); }

}  // namespace

TEST_CASE("tracking lasts until the outermost scope ends") {
  MemTracker tracker;
  std::vector<at::Tensor> kept;
  {
    const auto outer = tracker.enter();
    {
      const auto inner = tracker.enter();
      kept.push_back(bytes(10));
    }
    kept.push_back(bytes(200));
    CHECK(bytes_of(tracker, "Activation") == 210);
  }
  kept.push_back(bytes(3000));
  CHECK(bytes_of(tracker, "Activation") == 210);
  CHECK(bytes_of(tracker, "Other") == 3000);
}

TEST_CASE("while training is prepared, memory from outside of modules is not Activation") {
  MemTracker tracker;
  const auto scope = tracker.enter();
  tracker.set_preparing(true);
  models::Twice model(4);
  const auto data = bytes(100);
  CHECK(bytes_of(tracker, "Activation") == 0);
  const auto made = bytes_of(tracker, "Other");
  const auto output = model(at::ones({3, 4}));
  CHECK(bytes_of(tracker, "Activation") > 0);
  CHECK(bytes_of(tracker, "Parameter") > 0);
  output.sum().backward();
  CHECK(bytes_of(tracker, "Gradient") > 0);
  CHECK(bytes_of(tracker, "Other") == made - bytes_of(tracker, "Parameter"));
  tracker.set_preparing(false);
  const auto activations = bytes_of(tracker, "Activation");
  const auto batch = bytes(40);
  CHECK(bytes_of(tracker, "Activation") == activations + 40);
}

TEST_CASE("the run's peak counts from the outermost enter and stays after the scope") {
  MemTracker tracker;
  const auto kept = bytes(100);
  {
    const auto dropped = bytes(5000);
  }
  {
    const auto outer = tracker.enter();
    {
      const auto dropped = bytes(1000);
    }
    const auto inner = tracker.enter();
    CHECK(tracker.snapshot(SnapshotKind::kPeak).at("cpu").total() == 1100);
  }
  {
    const auto dropped = bytes(9000);
  }
  CHECK(tracker.snapshot(SnapshotKind::kPeak).at("cpu").total() == 1100);
  CHECK(tracker.snapshot(SnapshotKind::kPeak).at("cpu")["Activation"] == 1000);
  REQUIRE(tracker.alive_at_peak("cpu").size() == 2);
  CHECK(tracker.alive_at_peak("cpu")[0].bytes == 1000);
  const auto again = tracker.enter();
  CHECK(tracker.snapshot(SnapshotKind::kPeak).at("cpu").total() == 100);
}

TEST_CASE("without a scope the peak is empty") {
  MemTracker tracker;
  const auto kept = bytes(100);
  CHECK(tracker.snapshot(SnapshotKind::kPeak) == Snapshot{});
  CHECK(tracker.alive_at_peak("cpu").empty());
  CHECK(tracker.alive_at_peak("nowhere").empty());
  CHECK(tracker.step_peaks().empty());
}

TEST_CASE("a moved scope ends once") {
  MemTracker tracker;
  std::vector<MemTracker::Scope> scopes;
  {
    auto scope = tracker.enter();
    scopes.push_back(std::move(scope));
  }
  auto inside = bytes(7);
  CHECK(bytes_of(tracker, "Activation") == 7);
  scopes.clear();
  auto outside = bytes(11);
  CHECK(bytes_of(tracker, "Activation") == 7);
  CHECK(bytes_of(tracker, "Other") == 11);
  const auto again = tracker.enter();
  CHECK(bytes_of(tracker, "Other") == 11);
}

TEST_CASE("entering on a second thread is an error that says what to do") {
  MemTracker tracker;
  std::optional<MemTracker::Scope> scope(tracker.enter());
  std::string said;
  std::thread([&] {
    try {
      const auto second = tracker.enter();
    } catch (const c10::Error& error) {
      said = error.what_without_backtrace();
    }
  }).join();
  CHECK(
      said ==
      "this MemTracker is entered on another thread already. Leave that scope first, or use a tracker for each thread: "
      "several may be at work at once.");
  scope.reset();
  std::thread([&] {
    const auto second = tracker.enter();
    const auto inside = bytes(5);
    CHECK(bytes_of(tracker, "Activation") == 5);
  }).join();
}

TEST_CASE("several trackers see the same memory, each from its construction") {
  std::optional<MemTracker> first(std::in_place), second(std::in_place);
  models::MLP model(8, 16, 4);
  const auto batch = at::ones({2, 8});
  nn::SGD optimizer(model->parameters(), {.lr = 0.1, .momentum = 0.9});
  std::optional<MemTracker::Scope> outer(first->enter());
  model(batch).sum().backward();
  std::optional<MemTracker::Scope> inner(second->enter());
  model(batch).sum().backward();
  optimizer.step();
  CHECK(total(*first) == total(*second));
  CHECK(bytes_of(*first, "Optstate") == bytes_of(*second, "Optstate"));
  CHECK(bytes_of(*first, "Gradient") == bytes_of(*second, "Gradient"));
  CHECK(first->module_stats("MLP").snapshots.at(ModuleState::kPreForward).size() == 2);
  CHECK(second->module_stats("MLP").snapshots.at(ModuleState::kPreForward).size() == 1);

  SUBCASE("the first is left first") {
    outer.reset();
    inner.reset();
  }
  SUBCASE("the first is destroyed while it is entered") { first.reset(); }
  SUBCASE("the second is destroyed while it is entered") { second.reset(); }
  MemTracker third;
  auto& survivor = first ? *first : *second;
  CHECK(total(third) == total(survivor));
  const auto scope = third.enter();
  model(batch).sum().backward();
  CHECK(total(third) == total(survivor));
  CHECK(bytes_of(third, "Gradient") == bytes_of(survivor, "Gradient"));
  CHECK(third.parents() == kNothingRuns);
  CHECK(survivor.parents() == kNothingRuns);
}

TEST_CASE("a graph outlives the tracker of its forward") {
  models::MLP model(8, 16, 4);
  at::Tensor loss;
  {
    MemTracker tracker;
    const auto scope = tracker.enter();
    loss = model(at::ones({2, 8})).sum();
  }
  loss.backward();
  CHECK(model->fc1->weight.grad().defined());
  model = nullptr;
}

TEST_CASE("memory stays counted if its model is gone before its backward") {
  MemTracker tracker;
  const ExpectedCpuTotal expected(tracker);
  const auto scope = tracker.enter();
  at::Tensor loss;
  std::vector<bool> was_there;
  tracker.register_user_hooks(
      {.pre_backward = [&](auto* module, const auto&, const auto&) { was_there.push_back(module != nullptr); }});
  {
    models::MLP model(8, 16, 4);
    loss = model(at::ones({2, 8})).sum();
  }
  CHECK(total(tracker) == expected());
  loss.backward();
  CHECK(was_there == std::vector<bool>{false, false, false, false});
  CHECK(tracker.parents() == kNothingRuns);
  loss.reset();
  CHECK(now(tracker) == kNothing);
}

TEST_CASE("memory of a backward after the scope is Other, and its gradients are Gradient in the next scope") {
  MemTracker tracker;
  models::MLP model(8, 16, 4);
  tracker.track_external(model);
  const auto parameters = bytes_of(tracker, "Parameter");
  at::Tensor loss;
  {
    const auto scope = tracker.enter();
    loss = model(at::ones({2, 8})).sum();
  }
  loss.backward();
  loss.reset();
  CHECK(tracker.parents() == kNothingRuns);
  CHECK(bytes_of(tracker, "Gradient") == 0);
  CHECK(bytes_of(tracker, "Other") == parameters);
  const auto scope = tracker.enter();
  CHECK(bytes_of(tracker, "Gradient") == parameters);
  CHECK(bytes_of(tracker, "Other") == 0);
}

TEST_CASE("a scope that begins or ends in an optimizer's step leaves no step open") {
  MemTracker tracker;
  models::MLP model(8, 16, 4);
  nn::SGD optimizer(model->parameters(), {.lr = 0.1});
  std::optional<MemTracker::Scope> scope;
  SUBCASE("it begins there") {
    optimizer.step([&] {
      scope.emplace(tracker.enter());
      return at::Tensor();
    });
  }
  SUBCASE("it ends there") {
    scope.emplace(tracker.enter());
    optimizer.step([&] {
      scope.reset();
      return at::Tensor();
    });
    scope.emplace(tracker.enter());
  }
  const auto made = bytes(9);
  CHECK(bytes_of(tracker, "Activation") == 9);
  CHECK(bytes_of(tracker, "Temp") == 0);
}

}  // namespace plimsoll::test_scopes
