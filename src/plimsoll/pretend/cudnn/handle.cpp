#include "plimsoll/pretend/cudnn/handle.h"

#include <cstdio>

#include "plimsoll/pretend/cuda/version.h"
#include "plimsoll/pretend/model/machine.h"

namespace plimsoll::pretend::cudnn {

int enqueue(const Handle* handle, const char* function) {
  if (live(handle) == nullptr) return kBadParam;
  enqueue_call(function, handle->stream);
  return kSuccess;
}

}  // namespace plimsoll::pretend::cudnn

using namespace plimsoll::pretend;
using namespace plimsoll::pretend::cudnn;

PLIMSOLL_API int cudnnCreate(Handle** out) {
  if (out == nullptr) return kNullPointer;
  *out = nullptr;
  return guarded([&]() -> int {
    const int device = current_device();
    const plimsoll::Bytes bytes = machine().profile().cudnn_handle;
    if (!charge(device, bytes, Reason::kHandles)) return kDeviceAllocationFailed;
    auto* handle = new (std::nothrow) Handle;
    if (handle == nullptr) {
      discharge(device, bytes, Reason::kHandles);
      return kHostAllocationFailed;
    }
    handle->device = device;
    handle->charged = bytes;
    *out = handle;
    return kSuccess;
  });
}

PLIMSOLL_API int cudnnDestroy(Handle* handle) {
  if (handle == nullptr) return kSuccess;
  if (live(handle) == nullptr) return kBadParam;
  discharge(handle->device, handle->charged, Reason::kHandles);
  return destroy(handle);
}

PLIMSOLL_API int cudnnSetStream(Handle* handle, void* stream) {
  if (live(handle) == nullptr) return kBadParam;
  handle->stream = stream;
  return kSuccess;
}

PLIMSOLL_API int cudnnGetStream(const Handle* handle, void** stream) {
  if (live(handle) == nullptr || stream == nullptr) return kBadParam;
  *stream = handle->stream;
  return kSuccess;
}

PLIMSOLL_API std::size_t cudnnGetVersion() { return kVersion; }

/// The highest compute capability of cuDNN 9, as major × 100 + minor × 10.
PLIMSOLL_API std::size_t cudnnGetMaxDeviceVersion() { return 1210; }

PLIMSOLL_API std::size_t cudnnGetCudartVersion() { return kCudaVersion; }

/// `property`: 0 major, 1 minor, 2 patch level, as in library_types.h.
PLIMSOLL_API int cudnnGetProperty(int property, int* value) {
  if (value == nullptr) return kNullPointer;
  switch (property) {
    case 0:
      *value = kVersion / 10000;
      return kSuccess;
    case 1:
      *value = kVersion / 100 % 100;
      return kSuccess;
    case 2:
      *value = kVersion % 100;
      return kSuccess;
    default:
      return kBadParam;
  }
}

PLIMSOLL_API const char* cudnnGetErrorString(int status) {
  switch (status) {
    case kSuccess:
      return "CUDNN_STATUS_SUCCESS";
    case kNotInitialized:
      return "CUDNN_STATUS_NOT_INITIALIZED";
    case kBadParam:
      return "CUDNN_STATUS_BAD_PARAM";
    case kNullPointer:
      return "CUDNN_STATUS_BAD_PARAM_NULL_POINTER";
    case kNotFinalized:
      return "CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED";
    case kOutOfBound:
      return "CUDNN_STATUS_BAD_PARAM_OUT_OF_BOUND";
    case kAttributeType:
      return "CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE";
    case kDescriptorType:
      return "CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE";
    case kNotSupported:
      return "CUDNN_STATUS_NOT_SUPPORTED";
    case kInternalError:
      return "CUDNN_STATUS_INTERNAL_ERROR";
    case kHostAllocationFailed:
      return "CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED";
    case kDeviceAllocationFailed:
      return "CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED";
    case kExecutionFailed:
      return "CUDNN_STATUS_EXECUTION_FAILED";
    default:
      return "CUDNN_UNKNOWN_STATUS";
  }
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
