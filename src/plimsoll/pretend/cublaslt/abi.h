#pragma once

#include <cstddef>
#include <cstdint>

#include "plimsoll/pretend/model/object.h"

/// The declarations that callers share with cuBLASLt and cuBLAS: status codes, handles, and the layout of results in
/// the caller's memory.
namespace plimsoll::pretend::cublaslt {

enum Status : int {
  kSuccess = 0,
  kNotInitialized = 1,
  kAllocFailed = 3,
  kInvalidValue = 7,
  kMappingError = 11,
  kNotSupported = 15,
};

enum Operation : int { kNoTranspose = 0, kTranspose = 1, kConjugateTranspose = 2 };

using Handles = pretend::Objects<kNotInitialized, kInvalidValue, kAllocFailed>;

/// The start of every handle. A cuBLAS handle is also a valid cuBLASLt handle (torch passes one).
using HandleHead = Object<0x43424c53U>;

/// cublasLtMatmulAlgo_t.
struct Algorithm {
  std::uint64_t data[8] = {};
};

/// cublasLtMatmulHeuristicResult_t.
struct HeuristicResult {
  Algorithm algorithm = {};
  std::size_t workspace_size = 0;
  int state = 0;
  float waves_count = 0;
  int reserved[4] = {};
};
static_assert(sizeof(Algorithm) == 64);
static_assert(sizeof(HeuristicResult) == 96);

}  // namespace plimsoll::pretend::cublaslt
