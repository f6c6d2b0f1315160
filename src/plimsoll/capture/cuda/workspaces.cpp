#include "plimsoll/capture/cuda/workspaces.h"

#include <c10/core/Allocator.h>
#include <c10/macros/Export.h>

#include <map>
#include <shared_mutex>
#include <tuple>

// torch declares these in ATen/cuda/CUDAContextLight.h, which includes the headers of cuSPARSE, cuBLAS and cuSOLVER:
// wheels of hundreds of megabytes for four functions.
namespace at::cuda {

struct WorkspaceMapWithMutex {
  std::map<std::tuple<void*, void*>, std::pair<at::DataPtr, std::size_t>> map;
  std::shared_mutex mutex;
};

TORCH_CUDA_CPP_API WorkspaceMapWithMutex& cublas_handle_stream_to_workspace();
TORCH_CUDA_CPP_API WorkspaceMapWithMutex& cublaslt_handle_stream_to_workspace();
TORCH_CUDA_CPP_API std::size_t getChosenWorkspaceSize();
TORCH_CUDA_CPP_API std::size_t getCUDABlasLtWorkspaceSize();

}  // namespace at::cuda

namespace plimsoll::capture {

std::size_t cublas_workspace_bytes() { return at::cuda::getChosenWorkspaceSize(); }
std::size_t cublaslt_workspace_bytes() { return at::cuda::getCUDABlasLtWorkspaceSize(); }

std::vector<std::pair<c10::Device, const void*>> find_cuda_workspaces() {
  std::vector<std::pair<c10::Device, const void*>> found;
  for (auto* workspaces :
       {&at::cuda::cublas_handle_stream_to_workspace(), &at::cuda::cublaslt_handle_stream_to_workspace()}) {
    std::shared_lock lock(workspaces->mutex);
    for (const auto& [key, workspace] : workspaces->map) {
      found.emplace_back(workspace.first.device(), workspace.first.get());
    }
  }
  return found;
}

}  // namespace plimsoll::capture
