#include "plimsoll/pretend/cudnn/handle.h"

#include <cstdio>

#include "plimsoll/pretend/cuda/version.h"
#include "plimsoll/pretend/model/machine.h"

using namespace plimsoll::pretend;
using namespace plimsoll::pretend::cudnn;

PLIMSOLL_API int cudnnCreate(Handle** out) {
  if (out == nullptr) return kNullPointer;
  *out = nullptr;
  return guarded([&]() -> int {
    const int device = current_device();
    const plimsoll::Bytes bytes = machine().profile().cudnn_handle;
    if (!charge(device, bytes, Reason::kHandles)) return kDeviceAllocationFailed;
    if (const int status = Handles::make(out)) {
      discharge(device, bytes, Reason::kHandles);
      return status;
    }
    (*out)->device = device;
    (*out)->charged = bytes;
    return kSuccess;
  });
}

PLIMSOLL_API int cudnnDestroy(Handle* handle) {
  if (handle == nullptr) return kSuccess;
  if (!alive(handle)) return kBadParam;
  discharge(handle->device, handle->charged, Reason::kHandles);
  return Handles::destroy(handle);
}

PLIMSOLL_API int cudnnSetStream(Handle* handle, void* stream) { return Handles::set(handle, &Handle::stream, stream); }
PLIMSOLL_API int cudnnGetStream(const Handle* handle, void** stream) {
  return Handles::get(handle, &Handle::stream, stream);
}

PLIMSOLL_API std::size_t cudnnGetVersion() { return kVersion; }

/// The highest compute capability of cuDNN 9, as major × 100 + minor × 10.
PLIMSOLL_API std::size_t cudnnGetMaxDeviceVersion() { return 1210; }

PLIMSOLL_API std::size_t cudnnGetCudartVersion() { return kCudaVersion; }

PLIMSOLL_API int cudnnGetProperty(int property, int* value) {
  if (value == nullptr) return kNullPointer;
  constexpr Version kParts{kVersion / 10000, kVersion / 100 % 100, kVersion % 100};
  return kParts.part(property, value) ? kSuccess : kBadParam;
}

PLIMSOLL_API const char* cudnnGetErrorString(int status) {
  static constexpr StatusName kNames[] = {
      {kSuccess, "CUDNN_STATUS_SUCCESS"},
      {kNotInitialized, "CUDNN_STATUS_NOT_INITIALIZED"},
      {kBadParam, "CUDNN_STATUS_BAD_PARAM"},
      {kNullPointer, "CUDNN_STATUS_BAD_PARAM_NULL_POINTER"},
      {kNotFinalized, "CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED"},
      {kOutOfBound, "CUDNN_STATUS_BAD_PARAM_OUT_OF_BOUND"},
      {kAttributeType, "CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE"},
      {kDescriptorType, "CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE"},
      {kNotSupported, "CUDNN_STATUS_NOT_SUPPORTED"},
      {kInternalError, "CUDNN_STATUS_INTERNAL_ERROR"},
      {kHostAllocationFailed, "CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED"},
      {kDeviceAllocationFailed, "CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED"},
      {kExecutionFailed, "CUDNN_STATUS_EXECUTION_FAILED"},
  };
  return name_of(kNames, status, "CUDNN_UNKNOWN_STATUS");
}

PLIMSOLL_API void cudnnGetLastErrorString(char* message, std::size_t capacity) {
  if (message == nullptr || capacity == 0) return;
  const char* function = last_unpretended("cudnn");
  if (*function == '\0') {
    *message = '\0';
  } else {
    std::snprintf(message, capacity, "%s is not implemented by Plimsoll", function);
  }
}

// The sub-libraries of cuDNN 9 are one library here, so their versions always agree.
PLIMSOLL_API int cudnnGraphVersionCheck() { return kSuccess; }
PLIMSOLL_API int cudnnOpsVersionCheck() { return kSuccess; }
PLIMSOLL_API int cudnnCnnVersionCheck() { return kSuccess; }
PLIMSOLL_API int cudnnAdvVersionCheck() { return kSuccess; }
