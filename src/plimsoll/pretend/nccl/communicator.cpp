#include "plimsoll/pretend/nccl/communicator.h"

#include <cstdarg>
#include <cstdio>
#include <utility>

#include "plimsoll/pretend/model/machine.h"

namespace plimsoll::pretend::nccl {
namespace {

thread_local char last_failure_text[256];

}  // namespace

Bytes Communicator::connection_bytes() const {
  const NcclBytes& bytes = machine().profile().nccl;
  return bytes.of(ranks) - bytes.base;
}

bool Communicator::take_base() {
  const std::lock_guard lock(mutex_);
  const Bytes bytes = machine().profile().nccl.base;
  if (!charge(device, bytes, Reason::kNccl)) return false;
  base_ = bytes;
  return true;
}

bool Communicator::connect() {
  if (connected_.load(std::memory_order_acquire)) return true;
  const std::lock_guard lock(mutex_);
  if (connected_.load(std::memory_order_relaxed)) return true;
  const Bytes bytes = connection_bytes();
  if (!charge(device, bytes, Reason::kNccl)) return false;
  connections_ = bytes;
  connected_.store(true, std::memory_order_release);
  return true;
}

void Communicator::give_back() {
  const std::lock_guard lock(mutex_);
  discharge(device, base_ + connections_, Reason::kNccl);
  base_ = 0;
  connections_ = 0;
  connected_.store(false, std::memory_order_release);
}

Bytes Communicator::charged() const {
  const std::lock_guard lock(mutex_);
  return base_ + connections_;
}

bool Communicator::suspend() {
  const std::lock_guard lock(mutex_);
  if (suspended_.exchange(true, std::memory_order_acq_rel)) return false;
  discharge(device, connections_, Reason::kNccl);
  connections_ = 0;
  connected_.store(false, std::memory_order_release);
  return true;
}

bool Communicator::resume() {
  const std::lock_guard lock(mutex_);
  return suspended_.exchange(false, std::memory_order_acq_rel);
}

int create(Communicator** out, int rank, int ranks, int device) {
  static std::atomic<std::uint32_t> made{0};
  if (out == nullptr) return fail(kInvalidArgument, "the pointer to the communicator is null");
  *out = nullptr;
  if (ranks < 1 || rank < 0 || rank >= ranks) return fail(kInvalidArgument, "rank %d of %d ranks", rank, ranks);
  if (!has_device(device)) return fail(kInvalidArgument, "unknown device %d", device);
  if (Communicators::make(out, rank, ranks, device) != kSuccess) return fail(kSystemError, "out of host memory");
  if (!(*out)->take_base()) {
    Communicators::destroy(std::exchange(*out, nullptr));
    return fail(kUnhandledCudaError, "Cuda failure 2 'out of memory' for a communicator of %d ranks", ranks);
  }
  (*out)->number = made.fetch_add(1, std::memory_order_relaxed) + 1;
  return kSuccess;
}

int fail(int result, const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(last_failure_text, sizeof(last_failure_text), format, arguments);
  va_end(arguments);
  return result;
}

const char* last_failure() { return last_failure_text; }

}  // namespace plimsoll::pretend::nccl
