#include <ATen/ops/from_blob.h>
#include <doctest/doctest.h>
#include <torch/optim/adamw.h>

#include <thread>
#include <vector>

#include "plimsoll/nn/optim/adamw.h"
#include "plimsoll/nn/optim/hooked_optimizer.h"
#include "plimsoll/nn/optim/sgd.h"
#include "plimsoll/tracker/mem_tracker.h"
#include "tracker/looking.h"
#include "tracker/models.h"

namespace plimsoll {

namespace {

constexpr std::int64_t kParameters = (16 * 8 + 16 + 4 * 16 + 4) * 4;  // of MLP(8, 16, 4)

at::Tensor bytes(std::int64_t count) { return at::empty({count}, at::kByte); }

/// The storage alone: the tensor keeps its shape, as sharded parameters do.
void resize_storage(const at::Tensor& tensor, std::int64_t count) {
  auto* storage = tensor.storage().unsafeGetStorageImpl();
  auto memory = count == 0 ? c10::DataPtr(nullptr, tensor.device()) : storage->allocator()->allocate(count);
  storage->set_data_ptr_noswap(std::move(memory));
  storage->set_nbytes(count);
}

}  // namespace

TEST_CASE("a category of the user's stays with the memory, even if the tensor moves") {
  MemTracker tracker;
  auto cache = bytes(100);
  tracker.categorise(cache, "KV cache");
  CHECK(bytes_of(tracker, "KV cache") == 100);
  CHECK(bytes_of(tracker, "Other") == 0);
  cache.resize_({300});
  CHECK(bytes_of(tracker, "KV cache") == 300);
  resize_storage(cache, 0);
  CHECK(total(tracker) == 0);
  resize_storage(cache, 700);
  CHECK(bytes_of(tracker, "KV cache") == 700);
  const auto scope = tracker.enter();
  cache.resize_({900});
  CHECK(bytes_of(tracker, "KV cache") == 900);
  CHECK(total(tracker) == 900);
  auto copy = cache.clone();
  CHECK(bytes_of(tracker, "KV cache") == 900);
  CHECK(bytes_of(tracker, "Activation") == 900);
  tracker.categorise(cache, "Old cache");
  CHECK(bytes_of(tracker, "KV cache") == 0);
  CHECK(bytes_of(tracker, "Old cache") == 900);
  cache.reset();
  CHECK(total(tracker) == 900);
}

TEST_CASE("buckets for gradients are Gradient from their first instant, on the thread that makes them") {
  MemTracker tracker;
  const auto scope = tracker.enter();
  at::Tensor bucket, elsewhere;
  {
    const GradientBuckets making;
    bucket = bytes(100);
    std::thread([&] { elsewhere = bytes(30); }).join();
    const GradientBuckets nested;
  }
  const auto after = bytes(7);
  CHECK(bytes_of(tracker, "Gradient") == 100);
  CHECK(bytes_of(tracker, "Activation") == 37);
}

TEST_CASE("the hooks do not replace a category of the user's") {
  MemTracker tracker;
  models::MLP model(8, 16, 4);
  nn::SGD optimizer(model->parameters(), {.lr = 0.1, .momentum = 0.9});
  tracker.categorise(model->fc1->weight, "Mine");
  const auto scope = tracker.enter();
  model(at::ones({2, 8})).sum().backward();
  optimizer.step();
  CHECK(bytes_of(tracker, "Mine") == 16 * 8 * 4);
  optimizer.for_each_state([&](const auto& parameter, auto, const auto& state) {
    if (parameter.is_same(model->fc1->weight)) tracker.categorise(state, "Mine");
  });
  tracker.categorise(model->fc1->weight.grad(), "Mine");
  model(at::ones({2, 8})).sum().backward();
  optimizer.step();
  CHECK(bytes_of(tracker, "Mine") == 3 * 16 * 8 * 4);
  CHECK(bytes_of(tracker, "Parameter") == kParameters - 16 * 8 * 4);
  CHECK(bytes_of(tracker, "Optstate") == kParameters - 16 * 8 * 4);
  CHECK(bytes_of(tracker, "Gradient") == kParameters - 16 * 8 * 4);
}

TEST_CASE("categorise refuses a tensor without memory, and an empty name") {
  MemTracker tracker;
  int blob[4] = {};
  const auto expected = doctest::Contains(
      "cannot categorise a tensor as 'X': it has no memory of an allocator's (it is undefined, empty, on meta, or made "
      "from a "
      "blob)");
  CHECK_THROWS_WITH_AS(tracker.categorise(at::Tensor(), "X"), expected, c10::Error);
  CHECK_THROWS_WITH_AS(tracker.categorise(at::empty({0}), "X"), expected, c10::Error);
  CHECK_THROWS_WITH_AS(tracker.categorise(at::empty({4}, at::kMeta), "X"), expected, c10::Error);
  CHECK_THROWS_WITH_AS(tracker.categorise(at::from_blob(blob, {4}, at::kInt), "X"), expected, c10::Error);
  const auto tensor = bytes(8);
  CHECK_THROWS_WITH_AS(tracker.categorise(tensor, "Total"), doctest::Contains("cannot categorise a tensor as 'Total'"),
                       c10::ValueError);
  CHECK_THROWS_WITH_AS(tracker.categorise(tensor, ""),
                       doctest::Contains("use a name that is neither empty nor 'Total'"), c10::ValueError);
  const auto now = tracker.snapshot();
  for (const auto& [category, size] : now.at("cpu").categories()) CHECK(category != "X");
}

TEST_CASE("a parameter with a resized storage stays a Parameter, by each way to resize it") {
  MemTracker tracker;
  models::MLP model(8, 16, 4);
  tracker.track_external(model);
  const auto& weight = model->fc1->weight;
  const at::NoGradGuard no_gradients;
  resize_storage(weight, 0);
  CHECK(bytes_of(tracker, "Parameter") == kParameters - 16 * 8 * 4);
  CHECK(total(tracker) == kParameters - 16 * 8 * 4);
  resize_storage(weight, 16 * 8 * 4);
  CHECK(bytes_of(tracker, "Parameter") == kParameters);
  resize_storage(weight, 2 * 16 * 8 * 4);
  CHECK(bytes_of(tracker, "Parameter") == kParameters + 16 * 8 * 4);
  weight.set_(at::zeros({16, 8}));
  CHECK(total(tracker) == kParameters);
  const auto scope = tracker.enter();
  CHECK(bytes_of(tracker, "Parameter") == kParameters);
}

TEST_CASE("parameters and buffers that get other memory are named again") {
  MemTracker tracker;
  models::ConvNet model;
  tracker.track_external(model);
  const auto before = tracker.snapshot().at("cpu");
  model->to(at::kDouble);
  {
    const auto scope = tracker.enter();
    const auto now = tracker.snapshot().at("cpu");
    CHECK(now["Parameter"] == 2 * before["Parameter"]);
    CHECK(now["Buffer"] == 2 * before["Buffer"] - 8);  // One is a count of steps.
    CHECK(now["Other"] == 0);
  }
  const auto scope = tracker.enter();
  model->head->weight.set_data(at::zeros({10, 96}, at::kDouble));  // Within a scope: at the next step.
  model->forward(at::ones({1, 3, 8, 8}, at::kDouble));
  CHECK(tracker.snapshot().at("cpu")["Parameter"] == 2 * before["Parameter"]);
}

TEST_CASE("a parameter that needs gradients later has its gradient named") {
  MemTracker tracker;
  models::MLP model(8, 16, 4);
  for (auto& parameter : model->parameters()) parameter.requires_grad_(false);
  tracker.track_external(model);
  model->fc2->weight.requires_grad_(true);
  const auto scope = tracker.enter();
  model(at::ones({2, 8})).sum().backward();
  CHECK(bytes_of(tracker, "Gradient") == 4 * 16 * 4);
}

TEST_CASE("memory that another thread frees is gone") {
  MemTracker tracker;
  std::vector<at::Tensor> made;
  const auto scope = tracker.enter();
  std::thread([&] {
    for (int i = 0; i < 100; ++i) made.push_back(bytes(10));
  }).join();
  CHECK(bytes_of(tracker, "Activation") == 1000);
  tracker.categorise(made[0], "Kept");
  std::thread([&] { made.clear(); }).join();
  CHECK(now(tracker) == kNothing);
}

TEST_CASE("state of every optimizer is not Temp") {
  MemTracker tracker;
  models::MLP generator(8, 16, 4), critic(8, 16, 4);
  tracker.track_external(generator, critic);
  nn::SGD first(generator->parameters(), {.lr = 0.1, .momentum = 0.9});
  nn::AdamW second(critic->parameters(), {.implementation = nn::Implementation::kForeach});
  const auto scope = tracker.enter();
  (generator(at::ones({2, 8})) + critic(at::ones({2, 8}))).sum().backward();
  first.step();
  CHECK(bytes_of(tracker, "Optstate") == kParameters);
  CHECK(bytes_of(tracker, "Temp") == 0);
  second.step();
  CHECK(bytes_of(tracker, "Optstate") == 3 * kParameters + 4 * 4);  // Two moments, and four counts of steps.
  CHECK(bytes_of(tracker, "Temp") == 0);
  second.step();
  const auto peak = tracker.phase_peaks().at("optimizer").at("cpu");
  CHECK(peak["Optstate"] == 3 * kParameters + 4 * 4);
  CHECK(peak["Temp"] >= kParameters);  // What foreach needs at once.
  CHECK(bytes_of(tracker, "Activation") == 0);
  CHECK(bytes_of(tracker, "Other") == 0);
}

TEST_CASE("the state of torch's own optimizers is state, if their steps have hooks") {
  MemTracker tracker;
  models::MLP model(8, 16, 4);
  nn::HookedOptimizer<torch::optim::AdamW> optimizer(model->parameters(), torch::optim::AdamWOptions(1e-3));
  tracker.track_external(model, optimizer);
  const auto scope = tracker.enter();
  for (int step = 0; step < 2; ++step) {
    model(at::ones({2, 8})).sum().backward();
    optimizer.step();
    CHECK(bytes_of(tracker, "Optstate") == 2 * kParameters);
    CHECK(bytes_of(tracker, "Temp") == 0);
    CHECK(bytes_of(tracker, "Activation") == 0);
  }
  CHECK(tracker.step_peaks().size() == 2);
}

TEST_CASE("the passes of a closure are passes, and the update makes temporaries") {
  MemTracker tracker;
  models::MLP model(8, 16, 4);
  nn::AdamW optimizer(model->parameters(), {.implementation = nn::Implementation::kForeach});
  const auto batch = at::ones({2, 8});
  const auto scope = tracker.enter();
  for (int step = 0; step < 2; ++step) {
    optimizer.step([&] {
      optimizer.zero_grad();
      auto loss = model(batch).sum();
      CHECK(bytes_of(tracker, "Activation") == (2 * 16 + 1) * 4);
      CHECK(bytes_of(tracker, "Temp") == 0);
      loss.backward();
      return loss;
    });
  }
  const auto phases = tracker.phase_peaks();
  CHECK(phases.at("optimizer").at("cpu")["Temp"] > 0);
  CHECK(phases.at("forward").at("cpu")["Gradient"] == 0);
  CHECK(phases.at("backward").at("cpu")["Activation"] > 0);
  CHECK(bytes_of(tracker, "Optstate") == 2 * kParameters + 4 * 4);
}

TEST_CASE("gradients that are accumulated, kept as zeros or computed apart are gradients") {
  MemTracker tracker;
  models::MLP model(8, 16, 4);
  nn::SGD optimizer(model->parameters(), {.lr = 0.1});
  const auto scope = tracker.enter();
  model(at::ones({2, 8})).sum().backward();
  model(at::ones({2, 8})).sum().backward();
  CHECK(bytes_of(tracker, "Gradient") == kParameters);
  optimizer.zero_grad(/*set_to_none=*/false);
  CHECK(bytes_of(tracker, "Gradient") == kParameters);
  optimizer.zero_grad();
  CHECK(bytes_of(tracker, "Gradient") == 0);
  CHECK(bytes_of(tracker, "Temp") == 0);
}

}  // namespace plimsoll
