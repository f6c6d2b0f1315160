#include <new>

#include "plimsoll/pretend/cublas/abi.h"
#include "plimsoll/pretend/cuda/library_types.h"
#include "plimsoll/pretend/model/library_call.h"
#include "plimsoll/pretend/model/machine.h"

namespace {

using namespace plimsoll::pretend;
using namespace plimsoll::pretend::cublas;

template <typename T>
int get(const Handle* handle, std::atomic<T> Handle::* member, T* value) {
  if (!alive(handle)) return kNotInitialized;
  if (value == nullptr) return kInvalidValue;
  *value = (handle->*member).load(std::memory_order_relaxed);
  return kSuccess;
}

template <typename T>
int set(Handle* handle, std::atomic<T> Handle::* member, T value) {
  if (!alive(handle)) return kNotInitialized;
  (handle->*member).store(value, std::memory_order_relaxed);
  return kSuccess;
}

}  // namespace

PLIMSOLL_API int cublasCreate_v2(Handle** out) {
  if (out == nullptr) return kInvalidValue;
  const int device = current_device();
  const Profile& profile = machine().profile();
  if (!machine().device(device).ensure_context(profile)) return kAllocFailed;
  if (!charge(device, profile.cublas_handle, Reason::kHandles)) return kAllocFailed;
  auto* handle = new (std::nothrow) Handle;
  if (handle == nullptr) {
    discharge(device, profile.cublas_handle, Reason::kHandles);
    return kAllocFailed;
  }
  handle->device = device;
  handle->charged = profile.cublas_handle;
  *out = handle;
  return kSuccess;
}

PLIMSOLL_API int cublasDestroy_v2(Handle* handle) {
  if (!alive(handle)) return kNotInitialized;
  discharge(handle->device, handle->charged, Reason::kHandles);
  handle->magic = 0;
  delete handle;
  return kSuccess;
}

PLIMSOLL_API int cublasGetVersion_v2(Handle* handle, int* version) {
  if (!alive(handle)) return kNotInitialized;
  if (version == nullptr) return kInvalidValue;
  *version = kCublasVersion.major * 10000 + kCublasVersion.minor * 100 + kCublasVersion.patch;
  return kSuccess;
}

PLIMSOLL_API int cublasGetProperty(int property, int* value) {
  return kCublasVersion.part(property, value) ? kSuccess : kInvalidValue;
}

/// A new stream restores the library's own workspace, as cuBLAS documents.
PLIMSOLL_API int cublasSetStream_v2(Handle* handle, void* stream) {
  if (!alive(handle)) return kNotInitialized;
  if (stream_of(stream) == nullptr) return kInvalidValue;
  handle->stream.store(stream, std::memory_order_relaxed);
  handle->workspace.store(nullptr, std::memory_order_relaxed);
  handle->workspace_bytes.store(0, std::memory_order_relaxed);
  return kSuccess;
}

PLIMSOLL_API int cublasSetWorkspace_v2(Handle* handle, void* workspace, std::size_t bytes) {
  if (!alive(handle)) return kNotInitialized;
  if (reinterpret_cast<std::uintptr_t>(workspace) % 256 != 0) return kInvalidValue;
  handle->workspace.store(workspace, std::memory_order_relaxed);
  handle->workspace_bytes.store(bytes, std::memory_order_relaxed);
  return kSuccess;
}

PLIMSOLL_API int cublasGetStream_v2(Handle* handle, void** stream) { return get(handle, &Handle::stream, stream); }

PLIMSOLL_API int cublasSetPointerMode_v2(Handle* handle, int mode) {
  if (alive(handle) && mode != kHostPointers && mode != kDevicePointers) return kInvalidValue;
  return set(handle, &Handle::pointer_mode, mode);
}

PLIMSOLL_API int cublasGetPointerMode_v2(Handle* handle, int* mode) { return get(handle, &Handle::pointer_mode, mode); }

#define PLIMSOLL_CUBLAS_MODE(name, member)                                                                    \
  PLIMSOLL_API int cublasSet##name(Handle* handle, int value) { return set(handle, &Handle::member, value); } \
  PLIMSOLL_API int cublasGet##name(Handle* handle, int* value) { return get(handle, &Handle::member, value); }
PLIMSOLL_CUBLAS_MODE(AtomicsMode, atomics_mode)
PLIMSOLL_CUBLAS_MODE(MathMode, math_mode)
PLIMSOLL_CUBLAS_MODE(SmCountTarget, sm_count_target)
#undef PLIMSOLL_CUBLAS_MODE

PLIMSOLL_API const char* cublasGetStatusName(int status) {
  switch (status) {
    case kSuccess:
      return "CUBLAS_STATUS_SUCCESS";
    case kNotInitialized:
      return "CUBLAS_STATUS_NOT_INITIALIZED";
    case kAllocFailed:
      return "CUBLAS_STATUS_ALLOC_FAILED";
    case kInvalidValue:
      return "CUBLAS_STATUS_INVALID_VALUE";
    case kMappingError:
      return "CUBLAS_STATUS_MAPPING_ERROR";
    case kNotSupported:
      return "CUBLAS_STATUS_NOT_SUPPORTED";
    default:
      return "CUBLAS_STATUS_INTERNAL_ERROR";
  }
}

PLIMSOLL_API const char* cublasGetStatusString(int status) {
  const bool named = status == kNotSupported && *last_unpretended("cublas") != '\0';
  return named ? last_unpretended("cublas") : cublasGetStatusName(status);
}
