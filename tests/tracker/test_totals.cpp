#include <ATen/Parallel.h>
#include <doctest/doctest.h>

#include <optional>
#include <vector>

#include "plimsoll/nn/optim/adamw.h"
#include "plimsoll/nn/optim/sgd.h"
#include "plimsoll/tracker/mem_tracker.h"
#include "tracker/looking.h"
#include "tracker/models.h"

namespace plimsoll {

namespace {

/// Looks at every state of every module.
struct Looker {
  MemTracker& tracker;
  const ExpectedCpuTotal& expected;
  int looks = 0;

  void look() {
    ++looks;
    REQUIRE(total(tracker) == expected());
  }
  ModuleHooks hooks() {
    return {.pre_forward = [this](auto&, auto&) { look(); },
            .post_forward = [this](auto&, auto&, auto&) { look(); },
            .pre_backward = [this](auto*, const auto&, const auto&) { look(); },
            .post_backward = [this](auto*, const auto&, const auto&) { look(); }};
  }
};

at::Tensor tokens() { return at::arange(2 * 20).view({2, 20}); }

template <class Model>
void train_and_look(Model model, const at::Tensor& batch, MemTracker& tracker, const ExpectedCpuTotal& expected) {
  nn::AdamW optimizer(model->parameters(), {.implementation = nn::Implementation::kForeach});
  Looker looker{tracker, expected};
  tracker.track_external(model, optimizer, batch);
  tracker.register_user_hooks(looker.hooks());
  for (int step = 0; step < 3; ++step) {
    const auto scope = tracker.enter();
    auto loss = model(batch).square().mean();
    looker.look();
    loss.backward();
    looker.look();
    optimizer.step();
    looker.look();
    optimizer.zero_grad();
    looker.look();
  }
  tracker.clear_user_hooks();
  CHECK(looker.looks >= 3 * 4 * 4);
}

}  // namespace

TEST_CASE("at every state of every module the total of the CPU is the allocator's total") {
  at::set_num_threads(1);  // Threads that wait for each other would take most of the time of such small operators.
  MemTracker tracker;
  const ExpectedCpuTotal expected(tracker);
  SUBCASE("a convolutional network") { train_and_look(models::ConvNet(), at::ones({4, 3, 16, 16}), tracker, expected); }
  SUBCASE("a module run twice") { train_and_look(models::Twice(24), at::ones({3, 24}), tracker, expected); }
  SUBCASE("a transformer") {
    train_and_look(models::Transformer(models::TransformerOptions{}), tokens(), tracker, expected);
  }
  SUBCASE("a checkpointed transformer") {
    train_and_look(models::Transformer(models::TransformerOptions{.checkpoint = true}), tokens(), tracker, expected);
  }
  CHECK(total(tracker) == expected());
  CHECK(now(tracker) == kNothing);  // Everything is dropped, in every category.
}

TEST_CASE("older memory counts from its registration until its free") {
  std::optional<models::MLP> model(std::in_place, 8, 16, 4);
  at::Tensor batch = at::ones({2, 8});
  MemTracker tracker;
  CHECK(now(tracker) == kNothing);
  tracker.track_external(*model, batch);
  const auto snapshot = tracker.snapshot();
  CHECK(snapshot.at("cpu")["Parameter"] == (16 * 8 + 16 + 4 * 16 + 4) * 4);
  CHECK(snapshot.at("cpu")["Other"] == 2 * 8 * 4);
  CHECK(snapshot.at("cpu").total() == (16 * 8 + 16 + 4 * 16 + 4 + 2 * 8) * 4);
  model.reset();
  batch.reset();
  CHECK(now(tracker) == kNothing);
}

TEST_CASE("each category of a step has its exact bytes") {
  MemTracker tracker;
  models::MLP model(8, 16, 4);
  const auto batch = at::ones({2, 8});
  const std::int64_t parameters = (16 * 8 + 16 + 4 * 16 + 4) * 4;
  nn::SGD optimizer(model->parameters(), {.lr = 0.1, .momentum = 0.9});
  tracker.track_external(model, batch);
  const auto scope = tracker.enter();
  const auto check = [&](std::int64_t gradient, std::int64_t activation, std::int64_t state) {
    const auto now = tracker.snapshot().at("cpu");
    CHECK(now["Parameter"] == parameters);
    CHECK(now["Buffer"] == 0);
    CHECK(now["Gradient"] == gradient);
    CHECK(now["Activation"] == activation);
    CHECK(now["Temp"] == 0);
    CHECK(now["Optstate"] == state);
    CHECK(now["Other"] == 2 * 8 * 4);
    CHECK(now.total() == parameters + gradient + activation + state + 2 * 8 * 4);
  };
  {
    auto loss = model(batch).sum();
    check(0, (2 * 16 + 2 * 16 + 1) * 4 - 2 * 16 * 4, 0);  // What ReLU gave, and the loss: ReLU keeps its result alone.
    loss.backward();
    check(parameters, 4, 0);
  }
  check(parameters, 0, 0);
  optimizer.step();
  check(parameters, 0, parameters);
  optimizer.zero_grad();
  check(0, 0, parameters);
}

TEST_CASE("memory without registration is Other outside of scopes, and is never lost") {
  MemTracker tracker;
  const auto outside = at::empty({100}, at::kByte);
  CHECK(bytes_of(tracker, "Other") == 100);
  {
    const auto scope = tracker.enter();
    const auto inside = at::empty({30}, at::kByte);
    CHECK(bytes_of(tracker, "Other") == 100);
    CHECK(bytes_of(tracker, "Activation") == 30);
  }
  CHECK(total(tracker) == 100);
}

}  // namespace plimsoll
