#include "plimsoll/pretend/cuda/error_text.h"
#include "plimsoll/pretend/driver/driver.h"

using namespace plimsoll::pretend;

namespace {

constexpr ErrorText<CUresult> kErrors[] = {
    PLIMSOLL_ERROR(CUDA_SUCCESS, "no error"),
    PLIMSOLL_ERROR(CUDA_ERROR_INVALID_VALUE, "invalid argument"),
    PLIMSOLL_ERROR(CUDA_ERROR_OUT_OF_MEMORY, "out of memory"),
    PLIMSOLL_ERROR(CUDA_ERROR_NOT_INITIALIZED, "initialization error"),
    PLIMSOLL_ERROR(CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal"),
    PLIMSOLL_ERROR(CUDA_ERROR_INVALID_CONTEXT, "invalid context"),
    PLIMSOLL_ERROR(CUDA_ERROR_INVALID_HANDLE, "invalid resource handle"),
    PLIMSOLL_ERROR(CUDA_ERROR_NOT_FOUND, "named symbol not found"),
    PLIMSOLL_ERROR(CUDA_ERROR_NOT_READY, "not ready"),
    PLIMSOLL_ERROR(CUDA_ERROR_NOT_SUPPORTED, "not supported"),
    PLIMSOLL_ERROR(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "not permitted while a stream is captured"),
    PLIMSOLL_ERROR(CUDA_ERROR_STREAM_CAPTURE_MERGE, "the wait would join two captures"),
    PLIMSOLL_ERROR(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, "not permitted on the default stream while another is captured"),
    PLIMSOLL_ERROR(CUDA_ERROR_UNKNOWN, "unknown error"),
};

}  // namespace

PLIMSOLL_API CUresult cuGetErrorName(CUresult error, const char** name) {
  const auto* found = find_error(kErrors, error);
  *name = found != nullptr ? found->name : nullptr;
  return found != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

PLIMSOLL_API CUresult cuGetErrorString(CUresult error, const char** text) {
  const char* unpretended = error == CUDA_ERROR_NOT_SUPPORTED ? unpretended_text("cu") : nullptr;
  if (unpretended != nullptr) {
    *text = unpretended;
    return CUDA_SUCCESS;
  }
  const auto* found = find_error(kErrors, error);
  *text = found != nullptr ? found->text : nullptr;
  return found != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
