#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "plimsoll/base/bytes.h"
#include "plimsoll/pretend/cublaslt/abi.h"

namespace plimsoll::pretend::cublas {

using cublaslt::Handles;
using cublaslt::kAllocFailed;
using cublaslt::kConjugateTranspose;
using cublaslt::kInvalidValue;
using cublaslt::kMappingError;
using cublaslt::kNotInitialized;
using cublaslt::kNoTranspose;
using cublaslt::kNotSupported;
using cublaslt::kSuccess;
using cublaslt::kTranspose;

enum PointerMode : int { kHostPointers = 0, kDevicePointers = 1 };

/// cublasHandle_t. Several threads may use it, as in the library; the last setting counts.
struct Handle : cublaslt::HandleHead {
  int device = 0;
  Bytes charged = 0;  ///< Device memory, freed with the handle.
  std::atomic<void*> stream{nullptr};
  std::atomic<void*> workspace{nullptr};
  std::atomic<std::size_t> workspace_bytes{0};
  std::atomic<int> pointer_mode{kHostPointers};
  std::atomic<int> atomics_mode{0};
  std::atomic<int> math_mode{0};
  std::atomic<int> sm_count_target{0};
};

}  // namespace plimsoll::pretend::cublas
