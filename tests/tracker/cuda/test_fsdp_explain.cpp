#include <c10/core/GradMode.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <sstream>

#include "plimsoll/fsdp/fsdp_module.h"
#include "plimsoll/nn/checkpoint/checkpoint.h"
#include "plimsoll/nn/optim/sgd.h"
#include "plimsoll/report/text/sections.h"
#include "tracker/cuda/fsdp_row.h"

namespace plimsoll::row {

namespace {

constexpr auto P = kWhole, S = kShard;

/// The cause with this category and reason; an empty one if the explanation has no such cause.
Cause cause(const Explanation& explanation, const std::string& category, const std::string& why) {
  for (const auto& found : explanation.causes) {
    if (found.category == category && found.why == why) return found;
  }
  return {};
}

std::int64_t sum(const Explanation& explanation) {
  Bytes bytes = 0;
  for (const auto& found : explanation.causes) {
    Bytes of_owners = 0;
    for (const auto& [owner, owned] : found.owners) of_owners += owned;
    CHECK(of_owners == found.bytes);
    bytes += found.bytes;
  }
  return static_cast<std::int64_t>(bytes);
}

using Owners = std::vector<std::pair<std::string, Bytes>>;

}  // namespace

TEST_CASE("each byte of a backward's peak is explained: current, prefetched or in flight") {
  const small::GpuWorld world(kWorld);
  Row row(4);
  FSDPMemTracker tracker(row.model);
  const auto batch = input();
  tracker.track_inputs(batch);
  const auto scope = tracker.enter();
  row.loss(batch).backward();
  const auto found = tracker.explain();
  CHECK(found.device == kGpu);
  CHECK(found.step == 0);
  CHECK(found.phase == "backward");
  CHECK(found.module == Row::name(1));
  CHECK(found.stage == "backward");
  CHECK(found.total == tracker.snapshot(SnapshotKind::kPeak).at(kGpu).total());
  CHECK(sum(found) == found.total);
  const auto whole = cause(found, "Unsharded Param", "whole because its backward runs");
  CHECK(whole.owners == Owners{{Row::name(1), P}});
  CHECK(report::sentence(whole) == "256.00 KiB Unsharded Param of Sequential.1: whole because its backward runs.");
  CHECK(cause(found, "All Gather", "prefetched while Sequential.1 runs").owners == Owners{{Row::name(0), P}});
  CHECK(cause(found, "Reduce Scatter", "a reduce-scatter in flight").owners == Owners{{Row::name(2), P}});
  CHECK(cause(found, "Temp", "gradients of whole parameters, as they are computed").owners ==
        Owners{{Row::name(1), P}});
  CHECK(cause(found, "Sharded Grad", "gradients of this rank's shards").owners ==
        Owners{{Row::name(2), S}, {Row::name(3), S}});
  const auto shards = cause(found, "Sharded Param", "this rank's shards");
  CHECK(shards.bytes == 4 * S);
  CHECK(report::sentence(shards) ==
        "128.00 KiB Sharded Param of 4 modules, 32.00 KiB each (Sequential.0 … Sequential.3): this rank's shards.");
  CHECK(cause(found, "Inputs", "the batch").bytes == 4 * kDim * 4);
  const auto activations = cause(found, "Activation", "saved for backward, recomputed, or held by outputs");
  CHECK(report::sentence(activations) ==
        "5.00 KiB Activation of Sequential.0, and 1.00 KiB of no module: saved for backward, recomputed, or held by "
        "outputs.");
}

TEST_CASE("a forward's peak is explained by kept parameters and the buffer before") {
  const small::GpuWorld world(kWorld);
  Row row(3, {.reshard_after_forward = false});
  FSDPMemTracker tracker(row.model);
  const auto batch = input();
  const auto scope = tracker.enter();
  row.loss(batch);
  const auto found = tracker.explain();
  CHECK(sum(found) == found.total);
  CHECK(found.module == Row::name(2));
  CHECK(found.stage == "pre-forward");
  CHECK(cause(found, "Unsharded Param", "not resharded after forward").owners ==
        Owners{{Row::name(0), P}, {Row::name(1), P}});
  CHECK(cause(found, "Unsharded Param", "whole because its forward runs").owners == Owners{{Row::name(2), P}});
  CHECK(cause(found, "All Gather", "gathered for its forward").owners == Owners{{Row::name(2), P}});
  CHECK(cause(found, "All Gather", "gathered for its forward, kept until the next copy-out").owners ==
        Owners{{Row::name(1), P}});
}

TEST_CASE("parameters that are prefetched in forward belong to their own module, not to the running one") {
  const small::GpuWorld world(kWorld);
  Row row(3);
  fsdp::FSDPModule(row.layers[0])
      .set_modules_to_forward_prefetch({fsdp::FSDPModule(row.layers[1]), fsdp::FSDPModule(row.layers[2])});
  FSDPMemTracker tracker(row.model);
  const auto batch = input();
  const auto scope = tracker.enter();
  row.loss(batch);
  const auto found = tracker.explain();
  CHECK(sum(found) == found.total);
  CHECK(at_state(tracker, 0, FSDPModState::kAfterPreForward)["All Gather"] == 3 * P);
  const auto running = found.module;
  const auto prefetched = cause(found, "All Gather", "prefetched while " + running + " runs");
  CHECK(running == Row::name(1));
  CHECK(prefetched.owners == Owners{{Row::name(2), P}});
}

TEST_CASE("an unshard by hand is named as such, before and after the first pass of a module") {
  const small::GpuWorld world(kWorld);
  Row row(2);
  const auto batch = input();
  for (const bool ran : {false, true}) {
    CAPTURE(ran);
    FSDPMemTracker tracker(row.model);
    {
      const auto scope = tracker.enter();
      if (ran) row.loss(batch).backward();
    }
    const auto scope = tracker.enter();
    fsdp::FSDPModule(row.layers[1]).unshard();
    const auto found = tracker.explain();
    CHECK(sum(found) == found.total);
    CHECK(cause(found, "Unsharded Param", "unsharded by hand").owners == Owners{{Row::name(1), P}});
    CHECK(cause(found, "All Gather", "gathered by hand").owners == Owners{{Row::name(1), P}});
    fsdp::FSDPModule(row.layers[1]).reshard();
  }
}

TEST_CASE("a prefetch in the second of two forwards is a prefetch, even if its module has run before") {
  const small::GpuWorld world(kWorld);
  Row row(3);
  fsdp::FSDPModule(row.layers[0])
      .set_modules_to_forward_prefetch({fsdp::FSDPModule(row.layers[1]), fsdp::FSDPModule(row.layers[2])});
  FSDPMemTracker tracker(row.model);
  const auto batch = input();
  const at::NoGradGuard no_grad;
  for (int pass = 0; pass < 2; ++pass) {
    const auto scope = tracker.enter();
    row.loss(batch);
    const auto found = tracker.explain();
    CHECK(sum(found) == found.total);
    CHECK(found.module == Row::name(1));
    CHECK(cause(found, "All Gather", "prefetched while Sequential.1 runs").owners == Owners{{Row::name(2), P}});
  }
}

TEST_CASE("a checkpoint that runs a module again is the reason for its whole parameters") {
  const small::GpuWorld world(kWorld);
  Row row(1);
  FSDPMemTracker tracker(row.model);
  const auto linear = std::dynamic_pointer_cast<nn::Linear::ContainedType>(row.layers[0]);
  REQUIRE(linear);
  const auto batch = input().set_requires_grad(true);
  const auto run = [linear](const at::Tensor& x) {
    const auto y = linear->forward(x);
    const auto much = at::empty({4 << 20}, y.options());  // So that the peak is here.
    return at::relu(y);
  };
  const auto loss = nn::checkpoint(run, batch).sum();
  const auto scope = tracker.enter();
  loss.backward();
  const auto found = tracker.explain();
  CHECK(sum(found) == found.total);
  CHECK(cause(found, "Unsharded Param", "whole because its forward is run again").owners == Owners{{Row::name(0), P}});
  CHECK(cause(found, "Unsharded Param", "not resharded after forward").bytes == 0);
}

TEST_CASE("gradients that stay whole have their own reason") {
  const small::GpuWorld world(kWorld);
  Row row(2);
  FSDPMemTracker tracker(row.model);
  const auto batch = input();
  fsdp::FSDPModule(row.model).set_requires_gradient_sync(false);
  const auto scope = tracker.enter();
  for (int micro = 0; micro < 2; ++micro) row.loss(batch).backward();
  const auto found = tracker.explain();
  CHECK(sum(found) == found.total);
  CHECK(cause(found, "Accumulated Grad", "kept whole by backwards without gradient sync").bytes >= P);
  for (const auto& each : found.causes) CHECK(each.why != "not reduced");
}

TEST_CASE("HSDP's buffers and post-forward shards have their own reasons") {
  const small::GpuWorld world(kWorld);
  const auto batch = input();
  {
    Row row(2, {.reshard_after_forward = 2});
    FSDPMemTracker tracker(row.model);
    const auto scope = tracker.enter();
    const auto loss = row.loss(batch);
    CHECK(cause(tracker.explain(), "Post-Forward Shard", "kept for backward by reshard_after_forward").bytes > 0);
  }
  const auto mesh = distributed::DeviceMesh::init(at::kCUDA, {2, kWorld / 2}, {"replicate", "shard"});
  Row row(3, {.mesh = mesh, .mp_policy = {.reduce_dtype = at::kDouble}});
  FSDPMemTracker tracker(row.model);
  const auto scope = tracker.enter();
  row.loss(batch).backward();
  const auto found = tracker.explain();
  CHECK(sum(found) == found.total);
  CHECK(cause(found, "All Reduce", "reduced among replicas, and kept until that is over").bytes > 0);
}

TEST_CASE("the step that creates optimizer state has its own explanation, and keeps it") {
  const small::GpuWorld world(kWorld);
  Row row(4);
  nn::AdamW optimizer(row.model->parameters(), {.implementation = nn::Implementation::kForeach});
  FSDPMemTracker tracker(row.model, optimizer);
  CHECK_FALSE(tracker.explain_first_state());
  const auto batch = input();
  for (int step = 0; step < 3; ++step) {
    const auto scope = tracker.enter();
    row.loss(batch).backward();
    optimizer.step();
    optimizer.zero_grad();
  }
  const auto found = tracker.explain_first_state();
  REQUIRE(found);
  CHECK(sum(*found) == found->total);
  CHECK(found->step == 0);
  CHECK(found->phase == "optimizer");
  CHECK(found->module.empty());
  CHECK(cause(*found, "OptState", "state of the optimizer").bytes == 2 * 4 * S);
  const auto temporaries = cause(*found, "Temp", "temporaries of the optimizer's step");
  CHECK(temporaries.owners == Owners{{"AdamW", 4 * S}});
  CHECK(report::sentence(temporaries) ==
        "128.00 KiB Temp of AdamW: temporaries of the optimizer's step (4 allocations, one for each shard).");
}

TEST_CASE("state that causes the peak of its step is not a temporary") {
  const small::GpuWorld world(kWorld);
  Row row(2);
  const auto batch = input();
  const auto check = [&](nn::Optimizer& optimizer, std::int64_t shards) {
    FSDPMemTracker tracker(row.model, optimizer);
    const auto scope = tracker.enter();
    row.loss(batch).backward();
    optimizer.step();
    const auto found = tracker.explain_first_state();
    REQUIRE(found);
    CHECK(sum(*found) == found->total);
    CHECK(cause(*found, "OptState", "state of the optimizer").bytes +
              cause(*found, "Temp", "state of the optimizer, as it is made").bytes ==
          shards * S);
    CHECK(cause(*found, "Temp", "temporaries of the optimizer's step").bytes == 0);
    row.model->zero_grad();
  };
  nn::SGD sgd(row.model->parameters(), {.lr = 0.1, .momentum = 0.9, .implementation = nn::Implementation::kForLoop});
  check(sgd, 2);
  nn::AdamW fused(row.model->parameters(), {.implementation = nn::Implementation::kFused});
  // The counts of steps of a fused optimizer are on the GPU, in blocks of 512 bytes.
  FSDPMemTracker tracker(row.model, fused);
  const auto scope = tracker.enter();
  row.loss(batch).backward();
  fused.step();
  const auto found = tracker.explain_first_state();
  REQUIRE(found);
  CHECK(cause(*found, "Temp", "temporaries of the optimizer's step").bytes == 0);
}

TEST_CASE("offloaded state has a first step too") {
  const small::GpuWorld world(kWorld);
  Row row(2, {.offload_policy = fsdp::CPUOffloadPolicy{}});
  nn::AdamW optimizer(row.model->parameters(), {.implementation = nn::Implementation::kForeach});
  FSDPMemTracker tracker(row.model, optimizer);
  const auto batch = input();
  const auto scope = tracker.enter();
  row.loss(batch).backward();
  optimizer.step();
  const auto found = tracker.explain_first_state();
  REQUIRE(found);
  CHECK(found->device == kGpu);
  CHECK(sum(*found) == found->total);
}

TEST_CASE("an explanation stays after its scope, until the next scope") {
  const small::GpuWorld world(kWorld);
  Row row(3);
  FSDPMemTracker tracker(row.model);
  CHECK_THROWS_WITH_AS(tracker.explain(), doctest::Contains("nothing was seen of cuda:0 yet"), c10::Error);
  const auto batch = input();
  std::string within;
  {
    const auto scope = tracker.enter();
    const auto inner = tracker.enter();  // Scopes nest.
    row.loss(batch).backward();
    within = to_text(tracker.explain());
  }
  CHECK(to_text(tracker.explain()) == within);
  row.loss(batch).backward();  // Outside.
  CHECK(to_text(tracker.explain()) == within);
}

TEST_CASE("state that is older than the tracker has no first step") {
  const small::GpuWorld world(kWorld);
  Row row(2);
  nn::AdamW optimizer(row.model->parameters(), {.implementation = nn::Implementation::kForeach});
  const auto batch = input();
  row.loss(batch).backward();
  optimizer.step();
  FSDPMemTracker tracker(row.model, optimizer);
  CHECK(on_gpu(tracker)["OptState"] == 2 * 2 * S);
  const auto scope = tracker.enter();
  optimizer.step();
  CHECK_FALSE(tracker.explain_first_state());
}

TEST_CASE("the text of an explanation has its instant and a sentence for each cause") {
  const Explanation explanation{
      .device = "cuda:0",
      .total = 3 << 20,
      .reserved = 4 << 20,
      .step = 2,
      .phase = "backward",
      .module = "Net.layers.1",
      .stage = "post-backward",
      .causes = {{.bytes = 2 << 20, .category = "A", .why = "first"}, {.bytes = 1 << 20, .category = "B", .why = ""}}};
  CHECK(to_text(explanation) ==
        "3.00 MiB on cuda:0, in step 2, post-backward of Net.layers.1 (reserved then: 4.00 MiB)\n"
        "  2.00 MiB A: first.\n"
        "  1.00 MiB B.\n");
  std::ostringstream out;
  out << explanation;
  CHECK(out.str() == to_text(explanation));
}

}  // namespace plimsoll::row
