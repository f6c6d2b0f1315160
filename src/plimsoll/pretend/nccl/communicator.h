#pragma once

#include <atomic>
#include <mutex>

#include "plimsoll/pretend/nccl/abi.h"

namespace plimsoll::pretend::nccl {

/// ncclComm_t: the rank of this process in a group whose other ranks do not exist. Every call of the group completes at
/// once.
///
/// Its device memory follows NCCL since 2.22, which connects lazily. The communicator takes the profile's base bytes
/// when it is created, and the bytes that grow with the number of ranks at its first collective or transfer. It frees
/// both when it is destroyed or aborted.
/// back when it is destroyed or aborted.
struct Communicator {
  static constexpr std::uint32_t kAlive = 0x4e43434cU;

  Communicator(int rank, int ranks, int device) : rank(rank), ranks(ranks), device(device) {}

  std::uint32_t magic = kAlive;
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

/// The communicator behind a handle; null if it is not live.
Communicator* live(Communicator* communicator);

/// Creates a communicator on the given device.
int create(Communicator** out, int rank, int ranks, int device);

/// Stores the reason for ncclGetLastError on this thread, and returns `result`.
int fail(int result, const char* format, ...) __attribute__((format(printf, 2, 3)));
const char* last_failure();

}  // namespace plimsoll::pretend::nccl
