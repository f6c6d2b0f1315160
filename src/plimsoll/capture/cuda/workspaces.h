#pragma once

#include <c10/core/Device.h>

#include <cstddef>
#include <utility>
#include <vector>

namespace plimsoll::capture {

/// The sizes of torch's workspaces for cuBLAS and cuBLASLt on the current device.
std::size_t cublas_workspace_bytes();
std::size_t cublaslt_workspace_bytes();
/// As cuda_workspaces().
std::vector<std::pair<c10::Device, const void*>> find_cuda_workspaces();

}  // namespace plimsoll::capture
