#include <ATen/Functions.h>
#include <c10/cuda/CUDAStream.h>
#include <doctest/doctest.h>

#include "plimsoll/distributed/collectives.h"
#include "plimsoll/distributed/device_mesh.h"
#include "plimsoll/distributed/lone_store.h"

// On the pretend GPU a communicator of any size is complete at once, so one process can be a rank of any world.

using namespace plimsoll::distributed;

namespace {

at::Tensor on_gpu(std::int64_t count, at::ScalarType dtype = at::kFloat) {
  return at::empty({count}, at::TensorOptions().device(at::kCUDA).dtype(dtype));
}

void be_rank_of(int rank, int world_size) {
  const auto group = init_process_group({.backend = "nccl",
                                         .store = c10::make_intrusive<plimsoll::distributed::LoneStore>(),
                                         .rank = rank,
                                         .world_size = world_size});
  CHECK(group->getBackendType() == c10d::ProcessGroup::BackendType::NCCL);
  CHECK(group->getBackend(at::kCUDA)->getBackendName() == "nccl");
  const auto whole = on_gpu(4L * world_size);
  const auto part = on_gpu(4);
  CHECK_FALSE(all_gather_single(whole, part, group));
  CHECK_FALSE(reduce_scatter_single(part, whole, group, c10d::ReduceOp::AVG));
  CHECK_FALSE(all_reduce(part, group, c10d::ReduceOp::SUM));
  broadcast(part, group, 0);
  for (const auto& work : {all_gather_single(whole, part, group, true),
                           reduce_scatter_single(part, whole, group, c10d::ReduceOp::SUM, true),
                           all_reduce(part, group, c10d::ReduceOp::AVG, true)}) {
    REQUIRE(work);
    wait(work, group, "a collective");
  }
  barrier(group);
  destroy_process_group();
  CHECK_FALSE(is_initialized());
}

}  // namespace

TEST_CASE("a process is rank 0 of an nccl group of any size") {
  for (const int world_size : {1, 8, 1000}) {
    be_rank_of(0, world_size);
  }
}

TEST_CASE("a process is the last rank of an nccl group of any size, with a store that answers for rank 0") {
  for (const int world_size : {8, 1000}) {
    be_rank_of(world_size - 1, world_size);
  }
}
