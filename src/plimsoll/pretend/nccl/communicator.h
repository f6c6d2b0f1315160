#pragma once

#include <atomic>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "plimsoll/pretend/model/object.h"

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

/// ncclComm_t: the rank of this process in a group whose other ranks do not exist. Every call of the group completes at
/// once.
///
/// Its device memory follows NCCL since 2.22, which connects lazily. The communicator takes the profile's base bytes
/// when it is created, and the bytes that grow with the number of ranks at its first collective or transfer. It frees
/// both when it is destroyed or aborted.
struct Communicator : Object<0x4e43434cU> {
  Communicator(int rank, int ranks, int device) : rank(rank), ranks(ranks), device(device) {}

  std::uint32_t number = 0;  ///< See Event::communicator.
  const int rank;
  const int ranks;
  const int device;

  /// Returns false if the device has not enough memory.
  bool take_base();
  bool connect();
  void give_back();

  Bytes charged() const;
  /// Frees the memory of the connections until resume(). Both return false if the state does not change.
  bool suspend();
  bool resume();
  bool suspended() const { return suspended_.load(std::memory_order_acquire); }

 private:
  Bytes connection_bytes() const;

  mutable std::mutex mutex_;
  std::atomic<bool> connected_{false};
  std::atomic<bool> suspended_{false};
  Bytes base_ = 0;
  Bytes connections_ = 0;
};

using Communicators = Objects<kInvalidArgument, kInvalidArgument, kSystemError>;

/// Creates a communicator on the given device.
int create(Communicator** out, int rank, int ranks, int device);

/// Stores the reason for ncclGetLastError on this thread, and returns `result`.
int fail(int result, const char* format, ...) __attribute__((format(printf, 2, 3)));
const char* last_failure();

/// The number of ranks in a child of ncclCommSplit, as far as a lone rank can compute it: NCCL asks the other ranks,
/// which do not exist here. The result is exact if the color identifies the group; otherwise it is an upper bound.
///
/// torch (new_group) computes the color from the group's list of ranks, with Python's hash of the tuple. Groups of
/// training jobs are arithmetic sequences (consecutive ranks, or every n-th rank), and the rank's index in the group is
/// the key. So the function tries the sequences through this rank until one has the color. torch in C++ (split_group,
/// device meshes) uses the group's first rank as the color: with the key this gives the stride, and the group ends
/// within the parent. For any other color the result is the parent's size. This includes torch 2.5, whose colors are
/// truncated from a longer number and may be negative; NCCL requires non-negative colors but accepts these.
///
/// REQUIRES: 0 <= key <= parent_rank < parent_ranks.
int ranks_of_color(int color, int key, int parent_rank, int parent_ranks);

}  // namespace plimsoll::pretend::nccl
