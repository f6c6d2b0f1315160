#include <ATen/Functions.h>
#include <doctest/doctest.h>

#include "fsdp/join.h"
#include "fsdp/small_net.h"
#include "plimsoll/tracker/fsdp_mem_tracker.h"
#include "tracker/looking.h"

namespace plimsoll {

TEST_CASE("the worst rank is the rank with the highest peak, and all ranks get it") {
  ranks::on_ranks(3, [](const ranks::Rank& rank) {
    small::join(rank);
    small::Net model(64);
    const auto mesh = distributed::DeviceMesh::init(at::kCPU, {rank.size});
    for (auto& layer : model->layers) fsdp::fully_shard(layer, {.mesh = mesh});
    fsdp::fully_shard(model, {.mesh = mesh});
    FSDPMemTracker tracker(model);
    // Rank 1 has the largest batch.
    const auto batch = at::ones({rank.rank == 1 ? 512 : 8, 64});
    tracker.track_inputs(batch);
    {
      const auto scope = tracker.enter();
      model(batch).sum().backward();
    }
    const auto own = tracker.snapshot(SnapshotKind::kPeak);
    const auto worst = tracker.worst_rank();
    CHECK(worst.rank == 1);
    CHECK(worst.peak.at("cpu")["Inputs"] == 512 * 64 * 4);
    if (rank.rank == 1) {
      CHECK(worst.peak == own);
    } else {
      CHECK(worst.peak.at("cpu").total() > own.at("cpu").total());
    }
    CHECK(tracker.worst_rank().rank == 1);  // Once more: exchanges do not mix.
    distributed::destroy_process_group();
  });
}

TEST_CASE("with one process for the whole world the worst rank is itself") {
  distributed::destroy_process_group();
  distributed::init_process_group({.backend = "fake", .store = {}, .rank = 2, .world_size = 64});
  small::Net model(64);
  fsdp::fully_shard(model, {.mesh = distributed::DeviceMesh::init(at::kCPU, {64})});
  FSDPMemTracker tracker(model);
  CHECK(tracker.worst_rank().rank == 2);
  distributed::destroy_process_group();
}

TEST_CASE("on the CPU the total under FSDP is the allocator's total, too") {
  distributed::destroy_process_group();
  distributed::init_process_group({.backend = "fake", .store = {}, .rank = 0, .world_size = 4});
  small::Net model(64);
  const auto mesh = distributed::DeviceMesh::init(at::kCPU, {4});
  for (auto& layer : model->layers) fsdp::fully_shard(layer, {.mesh = mesh});
  fsdp::fully_shard(model, {.mesh = mesh});
  FSDPMemTracker tracker(model);
  const ExpectedCpuTotal expected(tracker);
  const auto batch = at::ones({8, 64});
  tracker.track_inputs(batch);
  const auto scope = tracker.enter();
  for (int step = 0; step < 2; ++step) {
    auto loss = model(batch).sum();
    CHECK(total(tracker) == expected());
    loss.backward();
    CHECK(total(tracker) == expected());
    model->zero_grad();
    CHECK(total(tracker) == expected());
  }
  CHECK(now(tracker)["Sharded Param"] > 0);
  distributed::destroy_process_group();
}

TEST_CASE("a snapshot that is written and read is the same") {
  Snapshot snapshot;
  snapshot["cuda:0"].add("Sharded Param", 12);
  snapshot["cuda:0"].add("Temp", 0);
  snapshot["cpu"].add("OptState", 3);
  CHECK(snapshot_from_json(to_json(snapshot)) == snapshot);
}

}  // namespace plimsoll
