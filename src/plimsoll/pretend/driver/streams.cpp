// The driver's streams, events and entry points, for Triton and other callers below the runtime.

#include <dlfcn.h>

#include <string>

#include "plimsoll/pretend/cuda/elapsed_time.h"
#include "plimsoll/pretend/driver/driver.h"

using namespace plimsoll::pretend;
using namespace plimsoll::pretend::driver;

namespace {

StreamEvent* event_of(CUevent handle) {
  auto* event = reinterpret_cast<StreamEvent*>(handle);
  const bool alive = event != nullptr && event->magic.load(std::memory_order_relaxed) == StreamEvent::kAlive;
  return alive ? event : nullptr;
}

}  // namespace

PLIMSOLL_API CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int priority) {
  *stream = reinterpret_cast<CUstream>(machine().create_stream(ensure_context().index, priority, flags));
  return CUDA_SUCCESS;
}

PLIMSOLL_API CUresult cuStreamCreate(CUstream* stream, unsigned flags) {
  return cuStreamCreateWithPriority(stream, flags, 0);
}

PLIMSOLL_API CUresult cuStreamDestroy_v2(CUstream handle) {
  Stream* const stream = stream_of(handle);
  if (stream == nullptr || stream->id == 0) return CUDA_ERROR_INVALID_HANDLE;
  machine().destroy_stream(stream);
  return CUDA_SUCCESS;
}

PLIMSOLL_API CUresult cuStreamSynchronize(CUstream handle) {
  Stream* const stream = stream_of(handle);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (machine().forbid_in_capture(*stream)) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  machine().synchronize(stream->device, "cuStreamSynchronize");
  return CUDA_SUCCESS;
}

PLIMSOLL_API CUresult cuStreamQuery(CUstream handle) {
  Stream* const stream = stream_of(handle);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return machine().forbid_in_capture(*stream) ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
}

PLIMSOLL_API CUresult cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus* out) {
  Stream* const stream = stream_of(handle);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const auto capture = machine().capture_of(*stream);
  *out = !capture          ? CU_STREAM_CAPTURE_STATUS_NONE
         : capture->active ? CU_STREAM_CAPTURE_STATUS_ACTIVE
                           : CU_STREAM_CAPTURE_STATUS_INVALIDATED;
  return CUDA_SUCCESS;
}

PLIMSOLL_API CUresult cuStreamGetCtx(CUstream handle, CUcontext* context) {
  Stream* const stream = stream_of(handle);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *context = context_of(stream->device);
  return CUDA_SUCCESS;
}

PLIMSOLL_API CUresult cuStreamWaitEvent(CUstream handle, CUevent event_handle, unsigned) {
  Stream* const stream = stream_of(handle);
  StreamEvent* const event = event_of(event_handle);
  if (stream == nullptr || event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  switch (machine().wait(*stream, *event)) {
    case Waited::kOnDefaultStream:
      return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    case Waited::kAcrossCaptures:
      return CUDA_ERROR_STREAM_CAPTURE_MERGE;
    case Waited::kDone:
      break;
  }
  return CUDA_SUCCESS;
}

PLIMSOLL_API CUresult cuEventCreate(CUevent* event, unsigned flags) {
  *event = reinterpret_cast<CUevent>(machine().create_event(ensure_context().index, flags));
  return CUDA_SUCCESS;
}

PLIMSOLL_API CUresult cuEventDestroy_v2(CUevent handle) {
  StreamEvent* const event = event_of(handle);
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  machine().destroy_event(event);
  return CUDA_SUCCESS;
}

PLIMSOLL_API CUresult cuEventRecord(CUevent handle, CUstream stream_handle) {
  StreamEvent* const event = event_of(handle);
  Stream* const stream = stream_of(stream_handle);
  if (stream == nullptr || event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return machine().record(*event, *stream) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

PLIMSOLL_API CUresult cuEventQuery(CUevent handle) {
  StreamEvent* const event = event_of(handle);
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return machine().completed(*event) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

PLIMSOLL_API CUresult cuEventSynchronize(CUevent handle) {
  StreamEvent* const event = event_of(handle);
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  machine().synchronize(*event, "cuEventSynchronize");
  return CUDA_SUCCESS;
}

PLIMSOLL_API CUresult cuEventElapsedTime_v2(float* milliseconds, CUevent first, CUevent last) {
  StreamEvent* const start = event_of(first);
  StreamEvent* const end = event_of(last);
  if (start == nullptr || end == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  switch (elapsed(*start, *end)) {
    case Elapsed::kInvalid:
      return CUDA_ERROR_INVALID_HANDLE;
    case Elapsed::kNotReady:
      return CUDA_ERROR_NOT_READY;
    case Elapsed::kKnown:
      *milliseconds = kElapsedMilliseconds;
  }
  return CUDA_SUCCESS;
}

// The same under its older name, which CUDA 12's headers call.
#undef cuEventElapsedTime
PLIMSOLL_ALIAS(cuEventElapsedTime, cuEventElapsedTime_v2);

PLIMSOLL_API CUresult cuGetProcAddress_v2(const char* name, void** function, int, cuuint64_t,
                                          CUdriverProcAddressQueryResult* result) {
  Dl_info here{};
  dladdr(reinterpret_cast<void*>(&cuGetProcAddress_v2), &here);
  void* const self = dlopen(here.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  *function = nullptr;
  for (const char* version : {"_v3", "_v2", ""}) {
    if (*function == nullptr) *function = dlsym(self, (std::string(name) + version).c_str());
  }
  if (result != nullptr) {
    *result = *function != nullptr ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  }
  return *function != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
