#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "plimsoll/nn/optim/sgd.h"
#include "plimsoll/tracker/mem_tracker.h"
#include "tracker/looking.h"
#include "tracker/models.h"

namespace plimsoll {

namespace {

const LiveTensor* find(const std::vector<LiveTensor>& alive, const std::string& category, const std::string& owner,
                       const std::vector<std::int64_t>& sizes) {
  const auto found = std::find_if(alive.begin(), alive.end(), [&](const auto& tensor) {
    return tensor.category == category && tensor.owner == owner && tensor.sizes == sizes;
  });
  return found == alive.end() ? nullptr : &*found;
}

}  // namespace

TEST_CASE("the live allocations at the peak sum to the peak, largest first") {
  MemTracker tracker;
  models::Transformer model(models::TransformerOptions{});
  nn::SGD optimizer(model->parameters(), {.lr = 0.1, .momentum = 0.9});
  {
    const auto scope = tracker.enter();
    for (int step = 0; step < 2; ++step) {
      model(at::arange(40).view({2, 20})).sum().backward();
      optimizer.step();
      optimizer.zero_grad();
    }
  }
  const auto alive = tracker.alive_at_peak("cpu");
  const auto peak = tracker.snapshot(SnapshotKind::kPeak).at("cpu");
  CHECK(std::accumulate(alive.begin(), alive.end(), std::int64_t{0},
                        [](auto sum, const auto& tensor) { return sum + tensor.bytes; }) == peak.total());
  CHECK(std::is_sorted(alive.begin(), alive.end(), [](const auto& a, const auto& b) { return a.bytes > b.bytes; }));
  DeviceSnapshot by_category;
  for (const auto& tensor : alive) by_category.add(tensor.category, tensor.bytes);
  CHECK(by_category == peak);
}

TEST_CASE("parameters, gradients, state and activations have owner, shape and dtype") {
  MemTracker tracker;
  models::MLP model(8, 16, 4);
  nn::SGD optimizer(model->parameters(), {.lr = 0.1, .momentum = 0.9});
  const auto batch = at::ones({2, 8});
  tracker.track_external(model, batch);
  const auto scope = tracker.enter();
  model(batch).sum().backward();
  optimizer.step();
  at::Tensor kept;
  tracker.register_user_hooks({.post_forward = [&](torch::nn::Module& module, auto&, nn::Tensors& results) {
    if (nn::class_name(module) == "ReLU") kept = results[0];
  }});
  const auto output = model(batch);
  const auto last = at::empty({100'000}, at::kByte);  // The peak.
  const auto alive = tracker.alive_at_peak("cpu");
  for (const auto* category : {"Parameter", "Gradient", "Optstate"}) {
    const auto* weight = find(alive, category, "MLP.fc1", {16, 8});
    REQUIRE(weight != nullptr);
    CHECK(weight->bytes == 16 * 8 * 4);
    CHECK(weight->dtype == at::kFloat);
    CHECK(find(alive, category, "MLP.fc2", {4}) != nullptr);
  }
  CHECK(find(alive, "Activation", "MLP.act", {2, 16}) != nullptr);
  CHECK(find(alive, "Activation", "MLP.fc2", {2, 4}) != nullptr);
  CHECK(find(alive, "Other", "", {2, 8}) != nullptr);
  CHECK(alive[0].bytes == 100'000);
  CHECK_FALSE(alive[0].sizes.has_value());  // No hook saw it.
  CHECK_FALSE(alive[0].dtype.has_value());
}

TEST_CASE("temporaries of an optimizer's step belong to the optimizer") {
  MemTracker tracker;
  models::MLP model(8, 16, 4);
  nn::SGD optimizer(model->parameters(), {.lr = 0.1});
  at::Tensor made;
  optimizer.register_step_post_hook([&](auto&) { made = at::empty({50'000}, at::kByte); });
  const auto scope = tracker.enter();
  model(at::ones({2, 8})).sum().backward();
  optimizer.step();
  const auto alive = tracker.alive_at_peak("cpu");
  CHECK(alive[0].bytes == 50'000);
  CHECK(alive[0].category == "Temp");
  CHECK(alive[0].owner == "SGD");
}

}  // namespace plimsoll
