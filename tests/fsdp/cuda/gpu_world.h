#pragma once

#include <ATen/Functions.h>
#include <c10/cuda/CUDACachingAllocator.h>

#include "fsdp/settle.h"
#include "fsdp/small_net.h"
#include "plimsoll/distributed/lone_store.h"

/// One process that is a rank of a world on the pretend GPU.
namespace small {

class GpuWorld {
 public:
  explicit GpuWorld(int size, const char* backend = "nccl") {
    distributed::destroy_process_group();
    distributed::init_process_group({.backend = backend,
                                     .store = c10::make_intrusive<plimsoll::distributed::LoneStore>(),
                                     .rank = 0,
                                     .world_size = size});
  }
  ~GpuWorld() { distributed::destroy_process_group(); }
  GpuWorld(const GpuWorld&) = delete;
  GpuWorld& operator=(const GpuWorld&) = delete;

  static fsdp::DeviceMesh mesh() { return distributed::DeviceMesh::init(at::kCUDA, {distributed::get_world_size()}); }
};

inline at::Tensor gpu_batch(int dim = 5) { return batch(0, dim, at::kCUDA); }

/// The bytes of live blocks in the caching allocator.
inline std::int64_t active_bytes() {
  at::cuda::clearCublasWorkspaces();
  return c10::cuda::CUDACachingAllocator::getDeviceStats(0).active_bytes[0].current;
}

}  // namespace small
