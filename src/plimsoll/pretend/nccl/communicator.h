#pragma once

#include <atomic>
#include <mutex>

#include "plimsoll/pretend/nccl/abi.h"

namespace plimsoll::pretend::nccl {

/// ncclComm_t: this process's place in a group of which it is the only member that exists. Whatever is asked of the
/// group completes at once.
///
/// Its device memory follows NCCL since 2.22, which connects lazily: the profile's base bytes are taken when the
/// communicator is made, those that grow with the number of ranks at its first collective or transfer. Both are given
/// back when it is destroyed or aborted.
struct Communicator {
  static constexpr std::uint32_t kAlive = 0x4e43434cU;

  Communicator(int rank, int ranks, int device) : rank(rank), ranks(ranks), device(device) {}

  std::uint32_t magic = kAlive;
  std::uint32_t number = 0;  ///< see Event::communicator
  const int rank;
  const int ranks;
  const int device;

  /// False: the device has not enough memory left.
  bool take_base();
  bool connect();
  void give_back();

  Bytes charged() const;
  /// Gives the connections' memory back until resume(). False: it is in that state already.
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

/// The communicator behind a handle; null when it is not a live one.
Communicator* live(Communicator* communicator);

/// Makes a communicator on the given device.
int create(Communicator** out, int rank, int ranks, int device);

/// Notes why the calling thread's call failed, for ncclGetLastError, and returns `result`.
int fail(int result, const char* format, ...) __attribute__((format(printf, 2, 3)));
const char* last_failure();

}  // namespace plimsoll::pretend::nccl
