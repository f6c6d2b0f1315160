#include <c10/core/GradMode.h>
#include <doctest/doctest.h>

#include <sstream>

#include "plimsoll/fsdp/fsdp_module.h"
#include "plimsoll/nn/checkpoint/checkpoint.h"
#include "plimsoll/nn/optim/sgd.h"
#include "tracker/cuda/fsdp_row.h"

namespace plimsoll::row::test_fsdp_modules {

namespace {

constexpr auto P = kWhole, S = kShard;

using Counts = std::map<std::string_view, std::size_t>;

Counts counts(FSDPMemTracker& tracker, const std::string& fqn) {
  Counts found;
  for (const auto& [state, snapshots] : tracker.fsdp_module_stats(fqn).snapshots) found[name(state)] = snapshots.size();
  return found;
}

/// Each state N times, except those of a recomputation.
Counts each(std::size_t times) {
  Counts states;
  for (const auto state : kFSDPModStateNames) {
    if (!state.ends_with("AC")) states[state] = times;
  }
  return states;
}

}  // namespace

TEST_CASE("after any number of iterations a module keeps its latest step") {
  const small::GpuWorld world(kWorld);
  Row row(3);
  nn::AdamW optimizer(row.model->parameters(), {.implementation = nn::Implementation::kForeach});
  FSDPMemTracker tracker(row.model, optimizer);
  const auto batch = input();
  tracker.track_inputs(batch);
  std::vector<std::vector<FSDPModuleStats>> steps;
  for (int step = 0; step < 6; ++step) {
    const auto scope = tracker.enter();
    row.loss(batch).backward();
    optimizer.step();
    optimizer.zero_grad();
    CHECK(counts(tracker, Row::name(1)) == each(1));
    steps.push_back(tracker.fsdp_module_stats());
  }
  // From the second step on, when there is optimizer state, one is like the other.
  for (std::size_t module = 0; module < steps[2].size(); ++module) {
    CHECK((steps[2][module].snapshots == steps[5][module].snapshots));
  }
  CHECK((steps[0][1].snapshots != steps[2][1].snapshots));
  CHECK(tracker.step_peaks().size() == 6);
}

TEST_CASE("the tracker's memory does not grow with steps") {
  const small::GpuWorld world(kWorld);
  Row row(2);
  nn::SGD optimizer(row.model->parameters(), {.lr = 0.1});
  const MemTrackerOptions few{.steps = 4};
  FSDPMemTracker without_optimizer(row.model, few);
  FSDPMemTracker tracker(row.model, optimizer, few);
  const auto batch = input();
  const auto scope = tracker.enter();
  const auto kept_after = [&](int steps) {
    for (int step = 0; step < steps; ++step) {
      row.loss(batch).backward();
      optimizer.step();
      optimizer.zero_grad();
    }
    return tracker.footprint();
  };
  const auto first = kept_after(600);
  const auto second = kept_after(600);
  CHECK(second.ledger_bytes <= first.ledger_bytes);
  CHECK(second.entries < 5000);  // Shapes of dead tensors are forgotten by thousands.
}

TEST_CASE("forwards without steps leave only the last scope behind") {
  const small::GpuWorld world(kWorld);
  Row row(2);
  FSDPMemTracker tracker(row.model);
  const auto batch = input();
  const at::NoGradGuard no_grad;
  const auto kept_after = [&](int passes) {
    for (int pass = 0; pass < passes; ++pass) {
      const auto scope = tracker.enter();
      row.loss(batch);
      tracker.reset_mod_stats();
    }
    return tracker.footprint().entries;
  };
  const auto first = kept_after(600);
  CHECK(kept_after(600) <= first);
}

TEST_CASE("several passes of one step are the calls of its states") {
  const small::GpuWorld world(kWorld);
  Row row(2);
  FSDPMemTracker tracker(row.model);
  const auto batch = input();
  const auto scope = tracker.enter();
  row.loss(batch).backward();
  row.loss(batch).backward();
  CHECK(counts(tracker, Row::name(0)) == each(2));
  tracker.reset_mod_stats();
  CHECK(tracker.fsdp_module_stats().empty());
}

TEST_CASE("modules that fully_shard took together are one module with all their names") {
  const small::GpuWorld world(kWorld);
  nn::Sequential model;
  for (int i = 0; i < 3; ++i) model->push_back(nn::Linear(torch::nn::LinearOptions(kDim, kDim).bias(false)));
  model->to(at::Device(at::kCUDA, 0));
  const auto layers = model->children();
  fsdp::fully_shard(std::vector<fsdp::ModuleRef>{layers[0], layers[1]});
  fsdp::fully_shard(layers[2]);
  fsdp::fully_shard(model);
  FSDPMemTracker tracker(model);
  const auto batch = input();
  const auto scope = tracker.enter();
  for (int step = 0; step < 2; ++step) {
    model->forward(batch).sum().backward();
    model->zero_grad();
  }
  const auto stats = tracker.fsdp_module_stats("Sequential.0, Sequential.1");
  CHECK(stats.snapshots.at(FSDPModState::kBeforePreForward).size() ==
        4);  // Each of both modules begins, in two passes.
  CHECK(stats.snapshots.at(FSDPModState::kAfterPostForward).size() == 2);  // One completes the group.
  CHECK(stats.snapshots.at(FSDPModState::kAfterPreForward)[0].at(kGpu)["Unsharded Param"] == 2 * P);
  CHECK(stats.snapshots.at(FSDPModState::kBeforePostBackward)[0].at(kGpu)["Unsharded Grad"] == 2 * P);
  const auto first = tracker.module_stats("Sequential.0").snapshots.at(ModuleState::kPeakForward)[0].at(kGpu);
  const auto second = tracker.module_stats("Sequential.1").snapshots.at(ModuleState::kPeakForward)[0].at(kGpu);
  CHECK(stats.snapshots.at(FSDPModState::kPeakForward)[0].at(kGpu).total() == std::max(first.total(), second.total()));
}

TEST_CASE("a module with parameters on two meshes has the stages of backward once for each mesh") {
  const small::GpuWorld world(kWorld);
  nn::Sequential model(nn::Linear(torch::nn::LinearOptions(kDim, kDim).bias(true)));
  model->to(at::Device(at::kCUDA, 0));
  const auto mesh = distributed::DeviceMesh::init(at::kCUDA, {2, kWorld / 2}, {"replicate", "shard"});
  const auto second = std::make_shared<fsdp::FSDPMeshInfo>(mesh["shard"]);
  fsdp::fully_shard(model->children()[0],
                    {.shard_placement_fn = [&](const at::Tensor& parameter) -> fsdp::ShardPlacement {
                      if (parameter.dim() == 1) return {};
                      return fsdp::ShardPlacementResult{std::nullopt, second};
                    }});
  fsdp::fully_shard(model);
  FSDPMemTracker tracker(model);
  CHECK(on_gpu(tracker)["Sharded Param"] == P / 4 + 512);
  const auto batch = input();
  const auto scope = tracker.enter();
  model->forward(batch).sum().backward();
  const auto stats = tracker.fsdp_module_stats("Sequential.0");
  CHECK(stats.snapshots.at(FSDPModState::kAfterPreForward).size() == 1);
  CHECK(stats.snapshots.at(FSDPModState::kBeforePreBackward).size() == 2);
  CHECK(stats.snapshots.at(FSDPModState::kAfterPostBackward).size() == 2);
  CHECK(on_gpu(tracker)["Sharded Grad"] == P / 4 + 512);
}

TEST_CASE("a checkpointed module has the states of its recomputation, which makes Activation") {
  const small::GpuWorld world(kWorld);
  Row row(2);
  FSDPMemTracker tracker(row.model);
  const auto batch = input().set_requires_grad(true);
  const auto scope = tracker.enter();
  auto x = batch;
  for (const auto& layer : row.layers) {
    auto linear = std::dynamic_pointer_cast<nn::Linear::ContainedType>(layer);
    REQUIRE(linear);
    x = nn::checkpoint([linear](const at::Tensor& input) { return at::relu(linear->forward(input)); }, x);
  }
  x.sum().backward();
  auto expected = each(1);
  expected["Pre-Forward AC"] = expected["Post-Forward AC"] = 1;
  CHECK(counts(tracker, Row::name(1)) == expected);
  const auto before = at_state(tracker, 1, FSDPModState::kPreForwardAC);
  const auto after = at_state(tracker, 1, FSDPModState::kPostForwardAC);
  CHECK(after["Activation"] - before["Activation"] == 4 * kDim * 4);
  CHECK(after["Temp"] == before["Temp"]);
}

TEST_CASE("offloaded shards, their gradients and the optimizer's state are on the host") {
  const small::GpuWorld world(kWorld);
  for (const bool pinned : {false, true}) {
    CAPTURE(pinned);
    Row row(3, {.offload_policy = fsdp::CPUOffloadPolicy{.pin_memory = pinned}});
    nn::AdamW optimizer(row.model->parameters(), {.implementation = nn::Implementation::kForeach});
    FSDPMemTracker tracker(row.model, optimizer);
    CHECK(bytes_of(tracker, "Sharded Param") == 3 * S);
    CHECK(on_gpu(tracker)["Sharded Param"] == 0);
    const auto batch = input();
    const auto scope = tracker.enter();
    row.loss(batch).backward();
    CHECK(bytes_of(tracker, "Sharded Grad") == 3 * S);
    CHECK(on_gpu(tracker)["Sharded Grad"] == 0);
    optimizer.step();
    CHECK(bytes_of(tracker, "OptState") == 2 * 3 * S + 3 * 4);  // And three counts of steps.
    CHECK(at_state(tracker, 1, FSDPModState::kPeakForward)["All Gather Input"] == 0);
  }
}

TEST_CASE("shards that are cast for an all-gather have another category than its buffer") {
  const small::GpuWorld world(kWorld);
  Row row(2, {.mp_policy = {.param_dtype = at::kBFloat16}});
  FSDPMemTracker tracker(row.model);
  struct LookingAllGather : fsdp::AllGather {
    explicit LookingAllGather(FSDPMemTracker& a_tracker) : tracker(a_tracker) {}
    distributed::Work operator()(const at::Tensor& output, const at::Tensor& input,
                                 const distributed::ProcessGroup& group, bool async_op,
                                 std::string_view what) override {
      seen.push_back(on_gpu(tracker));
      return fsdp::AllGather::operator()(output, input, group, async_op, what);
    }
    FSDPMemTracker& tracker;
    std::vector<DeviceSnapshot> seen;
  };
  const auto looking = std::make_shared<LookingAllGather>(tracker);
  fsdp::FSDPModule(row.layers[0]).set_custom_all_gather(looking);
  const auto batch = input();
  const auto scope = tracker.enter();
  row.loss(batch);
  REQUIRE(looking->seen.size() == 1);
  CHECK(looking->seen[0]["All Gather Input"] == S / 2);
  CHECK(looking->seen[0]["All Gather"] == P / 2);
  CHECK(looking->seen[0]["Unsharded Param"] == 0);
  CHECK(at_state(tracker, 0, FSDPModState::kAfterPreForward)["All Gather Input"] == 0);
}

TEST_CASE("modulewise snapshots show FSDP modules to a depth, without empty categories") {
  const small::GpuWorld world(kWorld);
  Row row(1);
  FSDPMemTracker tracker(row.model);
  const auto batch = input();
  {
    const auto scope = tracker.enter();
    row.loss(batch);
  }
  std::ostringstream shallow, deep;
  tracker.display_modulewise_snapshots({.depth = 1, .unit = ByteUnit::kKiB, .layout = Layout::kTable}, shallow);
  tracker.display_modulewise_snapshots({.depth = 2, .unit = ByteUnit::kKiB, .layout = Layout::kTable}, deep);
  CHECK(shallow.str().find("Module: Sequential\n") != std::string::npos);
  CHECK(shallow.str().find("Module: Sequential.0") == std::string::npos);
  CHECK(deep.str().find("Module: Sequential.0") != std::string::npos);
  CHECK(deep.str().find("After Pre-Forward # 1") != std::string::npos);
  CHECK(deep.str().find("Unsharded Param") != std::string::npos);
  CHECK(deep.str().find("All Reduce") == std::string::npos);
}

TEST_CASE("modules that are sharded after the tracker's construction are followed from the next scope") {
  const small::GpuWorld world(kWorld);
  nn::Sequential model(nn::Linear(torch::nn::LinearOptions(kDim, kDim).bias(false)));
  model->to(at::Device(at::kCUDA, 0));
  nn::Sequential outer(model);
  fsdp::fully_shard(model);
  FSDPMemTracker tracker(model);
  const auto batch = input();
  {
    const auto scope = tracker.enter();
    model->forward(batch).sum().backward();
  }
  CHECK(tracker.fsdp_module_stats().size() == 1);
  CHECK(tracker.fsdp_module_stats("Sequential").snapshots.size() == 10);
  // As a part of a larger module it has a longer name, and so has its memory.
  const auto scope = tracker.enter();
  outer->forward(batch).sum().backward();
  REQUIRE(tracker.fsdp_module_stats().size() == 1);
  const auto name = tracker.fsdp_module_stats()[0].fqn;
  CHECK(tracker.module_stats(name).fqn == name);
  for (const auto& alive : tracker.alive_at_peak(kGpu)) {
    if (alive.category == "Unsharded Param") CHECK(alive.owner == name);
  }
}

TEST_CASE("several trackers follow one model, and none follows a dead model") {
  const small::GpuWorld world(kWorld);
  const auto batch = input();
  auto row = std::make_unique<Row>(2);
  FSDPMemTracker first(row->model), second(row->model);
  {
    const auto one = first.enter();
    const auto other = second.enter();
    row->loss(batch).backward();
    CHECK(on_gpu(first) == on_gpu(second));
    CHECK(counts(first, Row::name(1)) == counts(second, Row::name(1)));
  }
  row.reset();
  plimsoll::settle();
  CHECK(first.fsdp_module_stats().empty());
  // Another one, perhaps where the first was.
  Row next(2);
  const auto one = first.enter();
  next.loss(batch).backward();
  CHECK(first.fsdp_module_stats().empty());
  const auto found = on_gpu(first);
  CHECK(found["Sharded Grad"] == 2 * S);  // The category is known, the owner is not.
}

TEST_CASE("a scope may outlive its tracker, and a tracker may be held as a MemTracker") {
  const small::GpuWorld world(kWorld);
  Row row(1);
  std::unique_ptr<MemTracker> tracker = std::make_unique<FSDPMemTracker>(row.model);
  const auto scope = tracker->enter();
  const auto batch = input();
  row.loss(batch).backward();
  CHECK(on_gpu(*tracker)["Sharded Grad"] == S);
  tracker.reset();
  row.loss(batch).backward();
}

TEST_CASE("a root without fully_shard is refused") {
  nn::Sequential model(nn::Linear(2, 2));
  CHECK_THROWS_WITH_AS(FSDPMemTracker{model}, doctest::Contains("fully_shard was not applied to this"), c10::Error);
  CHECK_THROWS_WITH_AS(FSDPMemTracker{model}, doctest::Contains("without FSDP use MemTracker"), c10::Error);
}

TEST_CASE("track_inputs refuses modules and optimizers, and the message of an unknown name has the name") {
  const small::GpuWorld world(kWorld);
  Row row(1);
  nn::AdamW optimizer(row.model->parameters(), {});
  FSDPMemTracker tracker(row.model, optimizer);
  CHECK_THROWS_WITH_AS(tracker.track_inputs(row.model), doctest::Contains("track_inputs was given a module"),
                       c10::TypeError);
  CHECK_THROWS_WITH_AS(tracker.track_inputs(optimizer),
                       doctest::Contains("track_inputs was given an optimizer (AdamW)"), c10::TypeError);
  CHECK_THROWS_WITH_AS(tracker.fsdp_module_stats("Nobody"), doctest::Contains("no FSDP module 'Nobody' has run"),
                       c10::ValueError);
  std::vector<at::Tensor> nested = {input(), input()};
  tracker.track_inputs(nested, std::make_pair(input(), std::optional<at::Tensor>()));
  CHECK(on_gpu(tracker)["Inputs"] == 2 * 4 * kDim * 4);  // The third is gone with its pair.
}

TEST_CASE("ignored parameters are Parameter, and their gradients are Gradient") {
  const small::GpuWorld world(kWorld);
  nn::Sequential model(nn::Linear(torch::nn::LinearOptions(kDim, kDim).bias(false)),
                       nn::Linear(torch::nn::LinearOptions(kDim, kDim).bias(false)));
  model->to(at::Device(at::kCUDA, 0));
  fsdp::fully_shard(model, {.ignored_params = {model->parameters()[1]}});
  FSDPMemTracker tracker(model);
  const auto batch = input();
  const auto scope = tracker.enter();
  model->forward(batch).sum().backward();
  const auto found = on_gpu(tracker);
  CHECK(found["Parameter"] == P);
  CHECK(found["Gradient"] == P);
  CHECK(found["Sharded Param"] == S);
  CHECK(found["Sharded Grad"] == S);
}

}  // namespace plimsoll::row::test_fsdp_modules
