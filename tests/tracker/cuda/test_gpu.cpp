#include <c10/cuda/CUDACachingAllocator.h>
#include <doctest/doctest.h>

#include <numeric>

#include "plimsoll/nn/optim/adamw.h"
#include "plimsoll/nn/optim/sgd.h"
#include "plimsoll/tracker/mem_tracker.h"
#include "tracker/cuda/counted.h"
#include "tracker/models.h"

namespace plimsoll::test_gpu {

namespace {

namespace allocator = c10::cuda::CUDACachingAllocator;
const c10::Device kGpuDevice(c10::kCUDA, 0);

struct Looker {
  MemTracker& tracker;
  int looks = 0;

  void look() {
    ++looks;
    REQUIRE(total(tracker, "cuda:0") == active_bytes());
  }
  ModuleHooks hooks() {
    return {.pre_forward = [this](auto&, auto&) { look(); },
            .post_forward = [this](auto&, auto&, auto&) { look(); },
            .pre_backward = [this](auto*, const auto&, const auto&) { look(); },
            .post_backward = [this](auto*, const auto&, const auto&) { look(); }};
  }
};

template <class Model>
void train_and_look(Model model, at::Tensor batch, MemTracker& tracker, nn::Implementation implementation) {
  model->to(kGpuDevice);
  batch = batch.to(kGpuDevice);
  nn::AdamW optimizer(model->parameters(), {.implementation = implementation});
  Looker looker{tracker};
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

at::Tensor tokens() { return at::arange(2 * 20).view({2, 20}); }

/// Without the workspaces, which live on.
void check_dropped(MemTracker& tracker) {
  for (const auto& [device, of_device] : tracker.snapshot()) {
    for (const auto& [category, bytes] : of_device.categories()) {
      if (category != "Workspace") CHECK(bytes == 0);
    }
  }
}

}  // namespace

TEST_CASE("at every state of every module the total of a GPU is the allocator's active bytes") {
  MemTracker tracker;
  SUBCASE("a convolutional network") {
    train_and_look(models::ConvNet(), at::ones({4, 3, 16, 16}), tracker, nn::Implementation::kForeach);
  }
  SUBCASE("a module run twice") {
    train_and_look(models::Twice(24), at::ones({3, 24}), tracker, nn::Implementation::kFused);
  }
  SUBCASE("a transformer") {
    train_and_look(models::Transformer(models::TransformerOptions{}), tokens(), tracker, nn::Implementation::kForeach);
  }
  SUBCASE("a checkpointed transformer") {
    train_and_look(models::Transformer(models::TransformerOptions{.checkpoint = true}), tokens(), tracker,
                   nn::Implementation::kFused);
  }
  SUBCASE("while torch records its own history") {
    allocator::recordHistory(true, nullptr, 1000, allocator::RecordContext::NEVER, false, {});
    train_and_look(models::MLP(8, 16, 4), at::ones({2, 8}), tracker, nn::Implementation::kForeach);
    allocator::recordHistory(false, nullptr, 1000, allocator::RecordContext::NEVER, false, {});
  }
  CHECK(total(tracker, "cuda:0") == active_bytes());
  check_dropped(tracker);
}

TEST_CASE("cuBLAS's workspaces of the forward thread and of the backward thread are Workspace") {
  MemTracker tracker;
  models::MLP model(64, 256, 32);
  model->to(kGpuDevice);
  tracker.track_external(model);
  const auto scope = tracker.enter();
  auto loss = model(at::ones({16, 64}, kGpuDevice)).sum();
  const auto forward = bytes_of(tracker, "Workspace", "cuda:0");
  CHECK(forward > 0);
  loss.backward();
  CHECK(bytes_of(tracker, "Workspace", "cuda:0") >= forward);
  loss.reset();
  const auto now = tracker.snapshot().at("cuda:0");
  CHECK(now["Parameter"] == now["Gradient"]);
  CHECK(now["Parameter"] + now["Gradient"] + now["Workspace"] == now.total());
  CHECK(now.total() == active_bytes());
}

TEST_CASE("a GPU's categories are in the allocator's rounded bytes") {
  MemTracker tracker;
  const auto scope = tracker.enter();
  const auto before = total(tracker, "cuda:0");
  const auto small = at::empty({1}, at::TensorOptions(kGpuDevice).dtype(at::kByte));
  CHECK(bytes_of(tracker, "Activation", "cuda:0") == 512);
  CHECK(total(tracker, "cuda:0") == before + 512);
  const auto alive = tracker.alive_at_peak("cuda:0");
  CHECK(std::accumulate(alive.begin(), alive.end(), std::int64_t{0}, [](auto sum, const auto& tensor) {
          return sum + tensor.bytes;
        }) == tracker.snapshot(SnapshotKind::kPeak).at("cuda:0").total());
  CHECK(tracker.reserved("cuda:0") >= static_cast<Bytes>(before + 512));
  CHECK(tracker.reserved("nowhere") == 0);
}

TEST_CASE("each device has its own books") {
  MemTracker tracker;
  const auto scope = tracker.enter();
  const auto host = at::empty({100}, at::kByte);
  const auto device = at::empty({100}, at::TensorOptions(kGpuDevice).dtype(at::kByte));
  CHECK(bytes_of(tracker, "Activation", "cpu") == 100);
  CHECK(bytes_of(tracker, "Activation", "cuda:0") == 512);
  tracker.categorise(device, "KV cache");
  CHECK(bytes_of(tracker, "KV cache", "cuda:0") == 512);
  CHECK(bytes_of(tracker, "KV cache", "cpu") == 0);
}

TEST_CASE("a backward on the GPU's own thread that throws leaves the tracker unchanged") {
  MemTracker tracker;
  models::MLP model(8, 16, 4);
  model->to(kGpuDevice);
  nn::SGD optimizer(model->parameters(), {.lr = 0.1});
  tracker.track_external(model);
  const auto scope = tracker.enter();
  const auto batch = at::ones({2, 8}, kGpuDevice);
  {
    auto hidden = model->fc1(batch);
    hidden.register_hook([](const at::Tensor&) -> void { throw std::runtime_error("backward broke"); });
    auto loss = model->fc2(hidden).sum();
    CHECK_THROWS_AS(loss.backward(), std::exception);
  }
  CHECK(total(tracker, "cuda:0") == active_bytes());
  optimizer.zero_grad();
  model(batch).sum().backward();
  optimizer.step();
  optimizer.zero_grad();
  CHECK(tracker.parents() == std::set<std::string>{"Global"});
  CHECK(total(tracker, "cuda:0") == active_bytes());
  const auto now = tracker.snapshot().at("cuda:0");
  CHECK(now["Gradient"] == 0);
  CHECK(now["Temp"] == 0);
}

}  // namespace plimsoll::test_gpu
