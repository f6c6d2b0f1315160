#include <c10/cuda/CUDAFunctions.h>
#include <doctest/doctest.h>

#include <cstdlib>

#include "distributed/ranks.h"
#include "nn/error_text.h"
#include "plimsoll/distributed/device_mesh.h"
#include "plimsoll/distributed/lone_store.h"

// Each in a new process, which has not used a GPU. The pretend host has eight.

using namespace plimsoll::distributed;
using ranks::on_ranks;
using ranks::Rank;

namespace {

/// A rank on a host of eight GPUs that the process has not used.
void join(int rank, int world_size, const char* local_rank = nullptr) {
  setenv("PLIMSOLL_GPUS", "8", 1);
  if (local_rank) {
    setenv("LOCAL_RANK", local_rank, 1);
  }
  init_process_group({.backend = "nccl",
                      .store = c10::make_intrusive<plimsoll::distributed::LoneStore>(),
                      .rank = rank,
                      .world_size = world_size});
}

int device_of_mesh(int world_size) {
  DeviceMesh::init(at::kCUDA, {world_size});
  return c10::cuda::current_device();
}

}  // namespace

TEST_CASE("a mesh makes LOCAL_RANK the current device, or else the rank modulo the number of devices") {
  on_ranks(1, [](const Rank&) {
    join(11, 16, "6");
    CHECK(device_of_mesh(16) == 6);
  });
  on_ranks(1, [](const Rank&) {
    join(13, 16);
    CHECK(device_of_mesh(16) == 5);
  });
}

TEST_CASE("a mesh keeps the device that the program has chosen") {
  on_ranks(1, [](const Rank&) {
    join(13, 16, "6");
    c10::cuda::set_device(2);
    CHECK(device_of_mesh(16) == 2);
  });
}

TEST_CASE("a mesh of a fake group or of the CPU chooses no device") {
  on_ranks(1, [](const Rank&) {
    join(13, 16, "6");
    DeviceMesh::init(at::kCPU, {16});
    CHECK(c10::cuda::current_device() == 0);
    destroy_process_group();
    init_process_group({.backend = "fake", .rank = 13, .world_size = 16});
    CHECK(device_of_mesh(16) == 0);
  });
}

TEST_CASE("a missing device is refused") {
  on_ranks(1, [](const Rank&) {
    join(8, 16, "8");
    CHECK(error_text([] { device_of_mesh(16); }) ==
          "DeviceMesh: LOCAL_RANK is 8, but this host has 8 devices. Start at most one rank for each device, or choose "
          "the device before the mesh is made.");
  });
  on_ranks(1, [](const Rank&) {
    join(8, 12);
    CHECK(error_text([] { device_of_mesh(12); }) ==
          "DeviceMesh: cannot choose one of 8 devices for this rank: LOCAL_RANK is not set, and 12 ranks do not fill "
          "hosts like this one. Set LOCAL_RANK (torchrun does), or choose the device before the mesh is made.");
  });
}
