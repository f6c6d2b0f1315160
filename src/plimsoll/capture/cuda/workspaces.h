#pragma once

#include <cstddef>

namespace plimsoll::capture {

/// How large torch makes the workspaces of cuBLAS and cuBLASLt on the current device.
std::size_t cublas_workspace_bytes();
std::size_t cublaslt_workspace_bytes();

}  // namespace plimsoll::capture
