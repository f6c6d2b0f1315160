#pragma once

#include <cuda_runtime_api.h>

#include "plimsoll/pretend/model/library_call.h"
#include "plimsoll/pretend/model/machine.h"

namespace plimsoll::pretend::runtime {

/// Stores an error as the calling thread's last one, and returns it. Success and "not ready" are not stored.
cudaError_t status(cudaError_t error);

/// For calls that are always refused: reports the name and returns cudaErrorNotSupported.
cudaError_t refused(const char* function);

/// Calls `call` with the stream behind `handle`, or returns the error for a stale handle.
template <typename Call>
cudaError_t with_stream(cudaStream_t handle, Call call) {
  Stream* const stream = stream_of(handle);
  if (stream == nullptr) return status(cudaErrorInvalidResourceHandle);
  return status(call(*stream));
}

/// The same for an event.
template <typename Call>
cudaError_t with_event(cudaEvent_t handle, Call call) {
  auto* const event = reinterpret_cast<StreamEvent*>(handle);
  if (event == nullptr || event->magic.load(std::memory_order_relaxed) != StreamEvent::kAlive) {
    return status(cudaErrorInvalidResourceHandle);
  }
  return status(call(*event));
}

}  // namespace plimsoll::pretend::runtime
