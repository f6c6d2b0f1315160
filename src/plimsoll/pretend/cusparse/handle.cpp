#include <new>

#include "plimsoll/pretend/cuda/library_types.h"
#include "plimsoll/pretend/cusparse/abi.h"
#include "plimsoll/pretend/model/library_call.h"
#include "plimsoll/pretend/model/machine.h"

using namespace plimsoll::pretend;
using namespace plimsoll::pretend::cusparse;

namespace plimsoll::pretend::cusparse {

int enqueue(const char* function, const Handle* handle) {
  if (!alive(handle)) return kNotInitialized;
  enqueue_call(function, handle->stream.load(std::memory_order_relaxed));
  return kSuccess;
}

void read_back_zero(const char* function, const Handle* handle, int* destination) {
  if (!is_host(destination)) return;
  const HostRows one{destination, sizeof *destination, sizeof *destination};
  enqueue_read_back(function, nullptr, one, handle->stream.load(std::memory_order_relaxed));
}

}  // namespace plimsoll::pretend::cusparse

PLIMSOLL_API int cusparseCreate(Handle** handle) {
  if (handle == nullptr) return kInvalidValue;
  if (!machine().device(current_device()).ensure_context(machine().profile())) return kAllocFailed;
  *handle = new (std::nothrow) Handle;
  return *handle != nullptr ? kSuccess : kAllocFailed;
}

PLIMSOLL_API int cusparseDestroy(Handle* handle) {
  if (!alive(handle)) return kNotInitialized;
  handle->magic = 0;
  delete handle;
  return kSuccess;
}

PLIMSOLL_API int cusparseGetVersion(Handle* handle, int* version) {
  if (!alive(handle)) return kNotInitialized;
  if (version == nullptr) return kInvalidValue;
  *version = kCusparseVersion.major * 1000 + kCusparseVersion.minor * 100 + kCusparseVersion.patch;
  return kSuccess;
}

PLIMSOLL_API int cusparseGetProperty(int property, int* value) {
  return kCusparseVersion.part(property, value) ? kSuccess : kInvalidValue;
}

PLIMSOLL_API int cusparseSetStream(Handle* handle, void* stream) {
  if (!alive(handle)) return kNotInitialized;
  if (stream_of(stream) == nullptr) return kInvalidValue;
  handle->stream.store(stream, std::memory_order_relaxed);
  return kSuccess;
}

PLIMSOLL_API int cusparseGetStream(Handle* handle, void** stream) {
  if (!alive(handle)) return kNotInitialized;
  if (stream == nullptr) return kInvalidValue;
  *stream = handle->stream.load(std::memory_order_relaxed);
  return kSuccess;
}

PLIMSOLL_API int cusparseSetPointerMode(Handle* handle, int mode) {
  if (!alive(handle)) return kNotInitialized;
  if (mode != kHostPointers && mode != kDevicePointers) return kInvalidValue;
  handle->pointer_mode.store(mode, std::memory_order_relaxed);
  return kSuccess;
}

PLIMSOLL_API int cusparseGetPointerMode(Handle* handle, int* mode) {
  if (!alive(handle)) return kNotInitialized;
  if (mode == nullptr) return kInvalidValue;
  *mode = handle->pointer_mode.load(std::memory_order_relaxed);
  return kSuccess;
}

PLIMSOLL_API const char* cusparseGetErrorName(int status) {
  switch (status) {
    case kSuccess:
      return "CUSPARSE_STATUS_SUCCESS";
    case kNotInitialized:
      return "CUSPARSE_STATUS_NOT_INITIALIZED";
    case kAllocFailed:
      return "CUSPARSE_STATUS_ALLOC_FAILED";
    case kInvalidValue:
      return "CUSPARSE_STATUS_INVALID_VALUE";
    case kArchMismatch:
      return "CUSPARSE_STATUS_ARCH_MISMATCH";
    case kMappingError:
      return "CUSPARSE_STATUS_MAPPING_ERROR";
    case kExecutionFailed:
      return "CUSPARSE_STATUS_EXECUTION_FAILED";
    case kInternalError:
      return "CUSPARSE_STATUS_INTERNAL_ERROR";
    case kMatrixTypeNotSupported:
      return "CUSPARSE_STATUS_MATRIX_TYPE_NOT_SUPPORTED";
    case kZeroPivot:
      return "CUSPARSE_STATUS_ZERO_PIVOT";
    case kNotSupported:
      return "CUSPARSE_STATUS_NOT_SUPPORTED";
    case kInsufficientResources:
      return "CUSPARSE_STATUS_INSUFFICIENT_RESOURCES";
    default:
      return "unrecognized error code";
  }
}

/// After a call of an unimplemented function, its name is the most useful text.
PLIMSOLL_API const char* cusparseGetErrorString(int status) {
  const bool named = status == kNotSupported && *last_unpretended("cusparse") != '\0';
  return named ? last_unpretended("cusparse") : cusparseGetErrorName(status);
}
