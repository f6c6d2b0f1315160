#include "plimsoll/pretend/cuda/library_types.h"
#include "plimsoll/pretend/cusparse/abi.h"
#include "plimsoll/pretend/model/machine.h"

using namespace plimsoll::pretend;
using namespace plimsoll::pretend::cusparse;

namespace plimsoll::pretend::cusparse {

void read_back_zero(const char* function, const Handle* handle, int* destination) {
  if (!is_host(destination)) return;
  const HostRows one{destination, sizeof *destination, sizeof *destination};
  enqueue_read_back(function, nullptr, one, handle->stream.load(std::memory_order_relaxed));
}

}  // namespace plimsoll::pretend::cusparse

PLIMSOLL_API int cusparseCreate(Handle** handle) {
  if (handle == nullptr) return kInvalidValue;
  if (!machine().device(current_device()).ensure_context(machine().profile())) return kAllocFailed;
  return Handles::make(handle);
}

PLIMSOLL_API int cusparseDestroy(Handle* handle) { return Handles::destroy(handle); }

PLIMSOLL_API int cusparseGetVersion(Handle* handle, int* version) {
  if (!alive(handle)) return kNotInitialized;
  return give(version, kCusparseVersion.number(), kInvalidValue);
}

PLIMSOLL_API int cusparseGetProperty(int property, int* value) {
  return kCusparseVersion.part(property, value) ? kSuccess : kInvalidValue;
}

PLIMSOLL_API int cusparseSetStream(Handle* handle, void* stream) { return Handles::set_stream(handle, stream); }
PLIMSOLL_API int cusparseGetStream(Handle* handle, void** stream) {
  return Handles::get(handle, &Handle::stream, stream);
}

PLIMSOLL_API int cusparseSetPointerMode(Handle* handle, int mode) {
  if (alive(handle) && mode != kHostPointers && mode != kDevicePointers) return kInvalidValue;
  return Handles::set(handle, &Handle::pointer_mode, mode);
}
PLIMSOLL_API int cusparseGetPointerMode(Handle* handle, int* mode) {
  return Handles::get(handle, &Handle::pointer_mode, mode);
}

PLIMSOLL_API const char* cusparseGetErrorName(int status) {
  static constexpr StatusName kNames[] = {
      {kSuccess, "CUSPARSE_STATUS_SUCCESS"},
      {kNotInitialized, "CUSPARSE_STATUS_NOT_INITIALIZED"},
      {kAllocFailed, "CUSPARSE_STATUS_ALLOC_FAILED"},
      {kInvalidValue, "CUSPARSE_STATUS_INVALID_VALUE"},
      {kArchMismatch, "CUSPARSE_STATUS_ARCH_MISMATCH"},
      {kMappingError, "CUSPARSE_STATUS_MAPPING_ERROR"},
      {kExecutionFailed, "CUSPARSE_STATUS_EXECUTION_FAILED"},
      {kInternalError, "CUSPARSE_STATUS_INTERNAL_ERROR"},
      {kMatrixTypeNotSupported, "CUSPARSE_STATUS_MATRIX_TYPE_NOT_SUPPORTED"},
      {kZeroPivot, "CUSPARSE_STATUS_ZERO_PIVOT"},
      {kNotSupported, "CUSPARSE_STATUS_NOT_SUPPORTED"},
      {kInsufficientResources, "CUSPARSE_STATUS_INSUFFICIENT_RESOURCES"},
  };
  return name_of(kNames, status, "unrecognized error code");
}

/// After a call of an unimplemented function, its name is the most useful text.
PLIMSOLL_API const char* cusparseGetErrorString(int status) {
  const bool named = status == kNotSupported && *last_unpretended("cusparse") != '\0';
  return named ? last_unpretended("cusparse") : cusparseGetErrorName(status);
}
