#pragma once

#include <climits>
#include <cstddef>
#include <cstdint>

#include "plimsoll/base/bytes.h"

/// The part of NCCL's binary interface that this face uses.
namespace plimsoll::pretend::nccl {

/// 2.29.7: the version for CUDA 13 builds of torch 2.13, and newer than that of CUDA 12 builds.
inline constexpr int kVersion = 22907;

enum Result : int {
  kSuccess = 0,
  kUnhandledCudaError = 1,
  kSystemError = 2,
  kInternalError = 3,
  kInvalidArgument = 4,
  kInvalidUsage = 5,
  kRemoteError = 6,
  kInProgress = 7,
};

struct UniqueId {
  char internal[128];
};
static_assert(sizeof(UniqueId) == 128);

inline constexpr int kNoColor = -1;
inline constexpr int kUndefined = INT_MIN;

/// The first fields of ncclConfig_t, equal in all versions; `size` is the size of the whole struct.
struct ConfigHead {
  std::size_t size;
  unsigned magic;
  unsigned version;
  int blocking;
};
static_assert(offsetof(ConfigHead, blocking) == 16);

struct SimulationInfo {
  std::size_t size;
  unsigned magic;
  unsigned version;
  float estimated_time;
};
static_assert(offsetof(SimulationInfo, estimated_time) == 16);

/// Bytes of one element; 0 for an unknown type.
constexpr Bytes bytes_of(int data_type) {
  constexpr Bytes kBytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  return data_type >= 0 && data_type < static_cast<int>(sizeof(kBytes) / sizeof(kBytes[0])) ? kBytes[data_type] : 0;
}

}  // namespace plimsoll::pretend::nccl
