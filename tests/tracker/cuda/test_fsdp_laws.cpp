#include <doctest/doctest.h>

#include "plimsoll/fsdp/fsdp_module.h"
#include "tracker/cuda/fsdp_row.h"

// FSDP2's memory laws, as equalities: P is a whole weight, S its shard, L the number of layers, all in fp32 unless
// said.

namespace plimsoll::row::test_fsdp_laws {

namespace {

constexpr int kLayers = 4;
constexpr auto L = static_cast<std::int64_t>(kLayers);
constexpr auto P = kWhole, S = kShard;

/// One step of a row under a tracker: passes, optimizer, zero_grad.
void step(Row& row, nn::Optimizer& optimizer, const at::Tensor& batch) {
  row.loss(batch).backward();
  optimizer.step();
  optimizer.zero_grad();
}

}  // namespace

TEST_CASE("after fully_shard a rank holds only its shards") {
  const small::GpuWorld world(kWorld);
  const Row row(kLayers);
  FSDPMemTracker tracker(row.model);
  const auto found = on_gpu(tracker);
  CHECK(found["Sharded Param"] == L * S);
  CHECK(found.total() - found["Workspace"] - found["Other"] == L * S);
}

TEST_CASE("forward holds one whole layer, its all-gather buffer, and for an instant the buffer before") {
  const small::GpuWorld world(kWorld);
  Row row(kLayers);
  FSDPMemTracker tracker(row.model);
  const auto batch = input();
  const auto scope = tracker.enter();
  const auto loss = row.loss(batch);
  for (int layer = 0; layer < kLayers; ++layer) {
    const auto after = at_state(tracker, layer, FSDPModState::kAfterPreForward);
    CHECK(after["Unsharded Param"] == P);
    CHECK(after["All Gather"] == P);  // Kept until the next layer has copied out of its own buffer.
    const auto peak = at_state(tracker, layer, FSDPModState::kPeakForward);
    CHECK(peak["Unsharded Param"] == P);
    CHECK(peak["All Gather"] == (layer == 0 ? P : 2 * P));  // The layer before's is freed after the copy-out.
    CHECK(peak["Sharded Param"] == L * S);
    const auto freed = at_state(tracker, layer, FSDPModState::kAfterPostForward);
    CHECK(freed["Unsharded Param"] == 0);
  }
  const auto over = on_gpu(tracker);
  CHECK(over["All Gather"] == 0);  // The root drops the last one.
  CHECK(over["Unsharded Param"] == 0);
}

TEST_CASE("without reshard after forward all layers stay whole, and backward gathers nothing") {
  const small::GpuWorld world(kWorld);
  Row row(kLayers, {.reshard_after_forward = false});
  FSDPMemTracker tracker(row.model);
  const auto batch = input();
  const auto scope = tracker.enter();
  auto loss = row.loss(batch);
  for (int layer = 0; layer < kLayers; ++layer) {
    const auto peak = at_state(tracker, layer, FSDPModState::kPeakForward);
    CHECK(peak["Unsharded Param"] == (layer + 1) * P);
    CHECK(peak["All Gather"] == (layer == 0 ? P : 2 * P));
  }
  CHECK(on_gpu(tracker)["Unsharded Param"] == L * P);
  loss.backward();
  for (int layer = 0; layer < kLayers; ++layer) {
    const auto before = at_state(tracker, layer, FSDPModState::kBeforePostBackward);
    CHECK(before["All Gather"] == 0);
    CHECK(before["Unsharded Param"] == (layer + 1) * P);  // Those after it are freed by their own post-backward.
  }
  CHECK(on_gpu(tracker)["Unsharded Param"] == 0);
}

TEST_CASE("backward holds one whole layer, its gradient, the next layer's buffer, and the last reduction's input") {
  const small::GpuWorld world(kWorld);
  Row row(kLayers);
  FSDPMemTracker tracker(row.model);
  const auto batch = input();
  const auto scope = tracker.enter();
  row.loss(batch).backward();
  for (int layer = 0; layer < kLayers; ++layer) {
    const auto behind = L - 1 - layer;  // Layers after their backward.
    const auto before = at_state(tracker, layer, FSDPModState::kBeforePostBackward);
    CHECK(before["Unsharded Param"] == P);
    CHECK(before["All Gather"] == (layer > 0 ? P : 0));  // Prefetched for the layer before it.
    CHECK(before["Unsharded Grad"] == P);
    CHECK(before["Reduce Scatter"] == (behind > 0 ? P : 0));  // The layer after it is being reduced.
    CHECK(before["Sharded Grad"] == behind * S);
    const auto after = at_state(tracker, layer, FSDPModState::kAfterPostBackward);
    CHECK(after["Unsharded Param"] == 0);
    CHECK(after["Unsharded Grad"] == 0);
    CHECK(after["Reduce Scatter"] == P);  // Its own; the one before was freed to make room.
    CHECK(after["Sharded Grad"] == (behind + 1) * S);
  }
  const auto over = on_gpu(tracker);
  CHECK(over["Reduce Scatter"] == 0);
  CHECK(over["Sharded Grad"] == L * S);
}

TEST_CASE("one more input buffer of reduce-scatters is one more whole weight in backward") {
  const small::GpuWorld world(kWorld);
  const auto batch = input();
  for (const int buffers : {1, 2, 3}) {
    Row row(kLayers);
    fsdp::FSDPModule(row.model).set_reduce_scatter_max_input_buffers(buffers);
    FSDPMemTracker tracker(row.model);
    const auto scope = tracker.enter();
    row.loss(batch).backward();
    CHECK(at_state(tracker, 0, FSDPModState::kAfterPostBackward)["Reduce Scatter"] == buffers * P);
  }
}

TEST_CASE("the optimizer's first step makes two shards of state and one of temporaries for each shard") {
  const small::GpuWorld world(kWorld);
  Row row(kLayers);
  nn::AdamW optimizer(row.model->parameters(), {.implementation = nn::Implementation::kForeach});
  FSDPMemTracker tracker(row.model, optimizer);
  const auto batch = input();
  const auto scope = tracker.enter();
  row.loss(batch).backward();
  CHECK(on_gpu(tracker)["OptState"] == 0);
  optimizer.step();
  CHECK(on_gpu(tracker)["OptState"] == 2 * L * S);  // exp_avg and exp_avg_sq; the step counts are on the host.
  const auto peak = tracker.phase_peaks().at("optimizer").at(kGpu);
  CHECK(peak["OptState"] == 2 * L * S);
  CHECK(peak["Temp"] == L * S);  // The square roots of exp_avg_sq, of all shards at once.
  CHECK(peak["Sharded Grad"] == L * S);
  CHECK(peak["Sharded Param"] == L * S);
  // The second step makes no state, and the same temporaries.
  optimizer.zero_grad();
  step(row, optimizer, batch);
  CHECK(tracker.phase_peaks().at("optimizer").at(kGpu)["Temp"] == L * S);
}

TEST_CASE("a backward without gradient sync leaves every gradient whole, in the dtype of the reduction") {
  const small::GpuWorld world(kWorld);
  Row row(kLayers, {.mp_policy = {.param_dtype = at::kBFloat16, .reduce_dtype = at::kFloat}});
  FSDPMemTracker tracker(row.model);
  const auto batch = input();
  const auto scope = tracker.enter();
  fsdp::FSDPModule root(row.model);
  root.set_requires_gradient_sync(false);
  row.loss(batch).backward();
  auto found = on_gpu(tracker);
  CHECK(found["Accumulated Grad"] == L * P);  // Computed in bf16, kept in fp32.
  CHECK(found["Unsharded Grad"] == 0);
  CHECK(found["Sharded Grad"] == 0);
  row.loss(batch).backward();
  CHECK(on_gpu(tracker)["Accumulated Grad"] == L * P);  // Added to.
  root.set_requires_gradient_sync(true);
  row.loss(batch).backward();
  found = on_gpu(tracker);
  CHECK(found["Accumulated Grad"] == 0);
  CHECK(found["Sharded Grad"] == L * S);
}

TEST_CASE("gradients that stay whole in their own dtype keep their name from scope to scope") {
  const small::GpuWorld world(kWorld);
  Row row(kLayers);
  FSDPMemTracker tracker(row.model);
  const auto batch = input();
  fsdp::FSDPModule(row.model).set_requires_gradient_sync(false);
  for (int micro = 0; micro < 3; ++micro) {
    const auto scope = tracker.enter();
    CHECK(on_gpu(tracker)["Accumulated Grad"] == (micro == 0 ? 0 : L * P));
    row.loss(batch).backward();
    CHECK(on_gpu(tracker)["Accumulated Grad"] == L * P);
    CHECK(on_gpu(tracker)["Unsharded Grad"] == 0);
  }
  // A tracker that comes later finds them, too.
  FSDPMemTracker late(row.model);
  CHECK(on_gpu(late)["Accumulated Grad"] == L * P);
}

TEST_CASE(
    "sharded along another dimension, gathered shards take a copy more while they are laid out, and so do gradients") {
  const small::GpuWorld world(kWorld);
  Row row(kLayers, {.shard_placement_fn = [](const at::Tensor&) -> fsdp::ShardPlacement { return fsdp::Shard{1}; }});
  FSDPMemTracker tracker(row.model);
  struct LookingReduceScatter : fsdp::ReduceScatter {
    explicit LookingReduceScatter(FSDPMemTracker& a_tracker) : tracker(a_tracker) {}
    at::Tensor allocate(std::int64_t numel, at::ScalarType dtype, at::Device device) override {
      seen.push_back(on_gpu(tracker));
      return fsdp::ReduceScatter::allocate(numel, dtype, device);
    }
    FSDPMemTracker& tracker;
    std::vector<DeviceSnapshot> seen;
  };
  const auto looking = std::make_shared<LookingReduceScatter>(tracker);
  fsdp::FSDPModule(row.layers[1]).set_custom_reduce_scatter(looking);
  const auto batch = input();
  const auto scope = tracker.enter();
  row.loss(batch).backward();
  for (int layer = 0; layer < kLayers; ++layer) {
    const auto peak = at_state(tracker, layer, FSDPModState::kPeakForward);
    CHECK(peak["All Gather Copy-Out"] == P);
    CHECK(peak["Unsharded Param"] == P);
    CHECK(at_state(tracker, layer, FSDPModState::kAfterPreForward)["All Gather Copy-Out"] == 0);
  }
  REQUIRE(looking->seen.size() == 2);                  // The input of the reduction, and its output.
  CHECK(looking->seen[0]["Unsharded Grad"] == 2 * P);  // The gradient, and its copy in another layout.
  CHECK(looking->seen[1]["Unsharded Grad"] == P);  // The copy is copied in; its source keeps its name until the end.
}

TEST_CASE("mixed precision gathers and holds half the bytes, and reduces from the same bytes") {
  const small::GpuWorld world(kWorld);
  Row row(kLayers, {.mp_policy = {.param_dtype = at::kBFloat16, .reduce_dtype = at::kFloat}});
  FSDPMemTracker tracker(row.model);
  const auto batch = input();
  const auto scope = tracker.enter();
  row.loss(batch).backward();
  const auto forward = at_state(tracker, 1, FSDPModState::kAfterPreForward);
  CHECK(forward["Unsharded Param"] == P / 2);
  CHECK(forward["All Gather"] == P / 2);
  CHECK(forward["Sharded Param"] == L * S);
  const auto before = at_state(tracker, 1, FSDPModState::kBeforePostBackward);
  CHECK(before["Unsharded Grad"] == P / 2);
  CHECK(before["Reduce Scatter"] == P);
  CHECK(at_state(tracker, 1, FSDPModState::kAfterPostBackward)["Sharded Grad"] == (L - 1) * S);
}

TEST_CASE(
    "under HSDP with another dtype for reductions each layer of backward keeps an all-reduce buffer until the end") {
  constexpr int kReplicas = 2;
  const small::GpuWorld world(kWorld);
  const auto mesh = distributed::DeviceMesh::init(at::kCUDA, {kReplicas, kWorld / kReplicas}, {"replicate", "shard"});
  constexpr auto kReduced = kNumel * 4 / (kWorld / kReplicas);  // A shard in fp32, over the ranks of one replica.
  constexpr auto kStored = kReduced / 2;                        // The same in bf16.
  Row row(kLayers, {.mesh = mesh, .mp_policy = {.reduce_dtype = at::kFloat}}, at::kBFloat16);
  FSDPMemTracker tracker(row.model);
  const auto batch = input(at::kBFloat16);
  const auto scope = tracker.enter();
  row.loss(batch).backward();
  for (int layer = 0; layer < kLayers; ++layer) {
    const auto over = L - layer;  // Layers after their backward.
    const auto after = at_state(tracker, layer, FSDPModState::kAfterPostBackward);
    CHECK(after["All Reduce"] == over * kReduced);
    CHECK(after["Sharded Grad"] == over * kStored);
  }
  CHECK(on_gpu(tracker)["All Reduce"] == 0);
}

TEST_CASE("under HSDP with one dtype the buffer of the all-reduce becomes the gradient") {
  const small::GpuWorld world(kWorld);
  const auto mesh = distributed::DeviceMesh::init(at::kCUDA, {2, kWorld / 2}, {"replicate", "shard"});
  Row row(kLayers, {.mesh = mesh});
  FSDPMemTracker tracker(row.model);
  const auto batch = input();
  const auto scope = tracker.enter();
  row.loss(batch).backward();
  const auto after = at_state(tracker, 0, FSDPModState::kAfterPostBackward);
  CHECK(after["All Reduce"] == 0);
  CHECK(after["Sharded Grad"] == L * (P / 4));
}

TEST_CASE("under HSDP without all-reduce each layer keeps its partial gradient") {
  const small::GpuWorld world(kWorld);
  const auto mesh = distributed::DeviceMesh::init(at::kCUDA, {2, kWorld / 2}, {"replicate", "shard"});
  Row row(kLayers, {.mesh = mesh});
  FSDPMemTracker tracker(row.model);
  const auto batch = input();
  const auto scope = tracker.enter();
  fsdp::FSDPModule root(row.model);
  root.set_requires_all_reduce(false);
  row.loss(batch).backward();
  auto found = on_gpu(tracker);
  CHECK(found["Partial Grad"] == L * (P / 4));
  CHECK(found["Sharded Grad"] == 0);
  root.set_requires_all_reduce(true);
  row.loss(batch).backward();
  found = on_gpu(tracker);
  CHECK(found["Partial Grad"] == 0);
  CHECK(found["Sharded Grad"] == L * (P / 4));
}

TEST_CASE("resharded to fewer ranks after forward, each layer keeps a larger shard until backward") {
  constexpr int kFewer = 2;
  const small::GpuWorld world(kWorld);
  Row row(kLayers, {.reshard_after_forward = kFewer});
  FSDPMemTracker tracker(row.model);
  const auto batch = input();
  const auto scope = tracker.enter();
  const auto loss = row.loss(batch);
  CHECK(on_gpu(tracker)["Post-Forward Shard"] == L * (P / kFewer));
  loss.backward();
  CHECK(on_gpu(tracker)["Post-Forward Shard"] == 0);
}

TEST_CASE("with uneven shards rank 0 has the most: padding is equal, and only the optimizer's state differs") {
  static constexpr int kRows = 129, kRanks = 8;  // 17 rows a rank, and 10 for the last.
  const auto held_by = [](int rank) {
    distributed::destroy_process_group();
    distributed::init_process_group({.backend = "fake", .store = {}, .rank = rank, .world_size = kRanks});
    nn::Sequential model(nn::Linear(torch::nn::LinearOptions(kDim, kRows).bias(false)));
    model->to(at::Device(at::kCUDA, 0));
    fsdp::fully_shard(model);
    nn::AdamW optimizer(model->parameters(), {.implementation = nn::Implementation::kForeach});
    FSDPMemTracker tracker(model, optimizer);
    const auto scope = tracker.enter();
    model->forward(input()).sum().backward();
    optimizer.step();
    return on_gpu(tracker);
  };
  const auto first = held_by(0), last = held_by(kRanks - 1);
  CHECK(first["Sharded Param"] == 17 * kDim * 4);
  CHECK(first["OptState"] == 2 * 17 * kDim * 4);
  CHECK(last["OptState"] == 2 * 10 * kDim * 4);
  for (const auto* category : {"Sharded Param", "Sharded Grad", "Unsharded Param", "Reduce Scatter"}) {
    CHECK(first[category] == last[category]);
  }
  for (int rank = 1; rank < kRanks; ++rank) CHECK(held_by(rank)["OptState"] <= first["OptState"]);
  distributed::destroy_process_group();
}

}  // namespace plimsoll::row::test_fsdp_laws
