#include "plimsoll/pretend/cublas/abi.h"
#include "plimsoll/pretend/cuda/library_types.h"
#include "plimsoll/pretend/model/machine.h"

using namespace plimsoll::pretend;
using namespace plimsoll::pretend::cublas;

PLIMSOLL_API int cublasCreate_v2(Handle** out) {
  if (out == nullptr) return kInvalidValue;
  const int device = current_device();
  const Profile& profile = machine().profile();
  if (!machine().device(device).ensure_context(profile)) return kAllocFailed;
  if (!charge(device, profile.cublas_handle, Reason::kHandles)) return kAllocFailed;
  const int status = Handles::make(out);
  if (status != kSuccess) {
    discharge(device, profile.cublas_handle, Reason::kHandles);
    return status;
  }
  (*out)->device = device;
  (*out)->charged = profile.cublas_handle;
  return kSuccess;
}

PLIMSOLL_API int cublasDestroy_v2(Handle* handle) {
  if (!alive(handle)) return kNotInitialized;
  discharge(handle->device, handle->charged, Reason::kHandles);
  return Handles::destroy(handle);
}

PLIMSOLL_API int cublasGetVersion_v2(Handle* handle, int* version) {
  if (!alive(handle)) return kNotInitialized;
  return give(version, kCublasVersion.number(10000), kInvalidValue);
}

PLIMSOLL_API int cublasGetProperty(int property, int* value) {
  return kCublasVersion.part(property, value) ? kSuccess : kInvalidValue;
}

/// A new stream restores the library's own workspace, as cuBLAS documents.
PLIMSOLL_API int cublasSetStream_v2(Handle* handle, void* stream) {
  if (const int status = Handles::set_stream(handle, stream)) return status;
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

PLIMSOLL_API int cublasGetStream_v2(Handle* handle, void** stream) {
  return Handles::get(handle, &Handle::stream, stream);
}

PLIMSOLL_API int cublasSetPointerMode_v2(Handle* handle, int mode) {
  if (alive(handle) && mode != kHostPointers && mode != kDevicePointers) return kInvalidValue;
  return Handles::set(handle, &Handle::pointer_mode, mode);
}

PLIMSOLL_API int cublasGetPointerMode_v2(Handle* handle, int* mode) {
  return Handles::get(handle, &Handle::pointer_mode, mode);
}

#define PLIMSOLL_CUBLAS_MODE(name, member)                                                                             \
  PLIMSOLL_API int cublasSet##name(Handle* handle, int value) { return Handles::set(handle, &Handle::member, value); } \
  PLIMSOLL_API int cublasGet##name(Handle* handle, int* value) { return Handles::get(handle, &Handle::member, value); }
PLIMSOLL_CUBLAS_MODE(AtomicsMode, atomics_mode)
PLIMSOLL_CUBLAS_MODE(MathMode, math_mode)
PLIMSOLL_CUBLAS_MODE(SmCountTarget, sm_count_target)

PLIMSOLL_API const char* cublasGetStatusName(int status) {
  static constexpr StatusName kNames[] = {
      {kSuccess, "CUBLAS_STATUS_SUCCESS"},
      {kNotInitialized, "CUBLAS_STATUS_NOT_INITIALIZED"},
      {kAllocFailed, "CUBLAS_STATUS_ALLOC_FAILED"},
      {kInvalidValue, "CUBLAS_STATUS_INVALID_VALUE"},
      {kMappingError, "CUBLAS_STATUS_MAPPING_ERROR"},
      {kNotSupported, "CUBLAS_STATUS_NOT_SUPPORTED"},
  };
  return name_of(kNames, status, "CUBLAS_STATUS_INTERNAL_ERROR");
}

PLIMSOLL_API const char* cublasGetStatusString(int status) {
  const bool named = status == kNotSupported && *last_unpretended("cublas") != '\0';
  return named ? last_unpretended("cublas") : cublasGetStatusName(status);
}
