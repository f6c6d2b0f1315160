#pragma once

#include <cstddef>
#include <cstdint>

#include "plimsoll/base/bytes.h"

/// The part of cuDNN 9's binary interface that this face uses: status codes, data types and the few structs that the
/// caller owns. Enumerations are int; handles and descriptors are pointers to our objects.
namespace plimsoll::pretend::cudnn {

/// The version of cudnnGetVersion. torch requires a run-time cuDNN that is not older than the one of its build, with
/// the same major version. CUDA 13 builds of torch use 9.20.0. CUDA 12 builds use 9.1 (torch 2.5) to 9.10 and later, so
/// 9.19.0 is new enough. A build for one torch may pass its exact version.
#ifdef PLIMSOLL_CUDNN_VERSION
inline constexpr int kVersion = PLIMSOLL_CUDNN_VERSION;
#elif defined(PLIMSOLL_CUDA_MAJOR) && PLIMSOLL_CUDA_MAJOR < 13
inline constexpr int kVersion = 91900;
#else
inline constexpr int kVersion = 92000;
#endif

enum Status : int {
  kSuccess = 0,
  kNotInitialized = 1001,
  kBadParam = 2000,
  kNullPointer = 2002,
  kNotFinalized = 2004,
  kOutOfBound = 2005,
  kAttributeType = 2010,
  kDescriptorType = 2012,
  kNotSupported = 3000,
  kInternalError = 4000,
  kHostAllocationFailed = 4003,
  kDeviceAllocationFailed = 4004,
  kExecutionFailed = 5000,
};

enum DataType : int {
  kFloat = 0,
  kDouble = 1,
  kHalf = 2,
  kInt8 = 3,
  kInt32 = 4,
  kInt8x4 = 5,
  kUint8 = 6,
  kUint8x4 = 7,
  kInt8x32 = 8,
  kBfloat16 = 9,
  kInt64 = 10,
  kBoolean = 11,
  kFp8E4m3 = 12,
  kFp8E5m2 = 13,
};

/// Bytes of one element; 0 for an unknown type.
constexpr Bytes bytes_of(int data_type) {
  constexpr Bytes kBytes[] = {4, 8, 2, 1, 4, 4, 1, 4, 32, 2, 8, 1, 1, 1};  // In the order of DataType.
  return data_type >= 0 && data_type <= kFp8E5m2 ? kBytes[data_type] : 0;
}

/// The query result for a convolution algorithm: the same layout for forward, data and filter.
struct AlgorithmPerformance {
  int algorithm;
  int status;
  float milliseconds;
  std::size_t workspace;
  int determinism;  ///< 1: deterministic.
  int math_type;
  int reserved[3];
};
static_assert(sizeof(AlgorithmPerformance) == 48);
static_assert(offsetof(AlgorithmPerformance, workspace) == 16);

}  // namespace plimsoll::pretend::cudnn
