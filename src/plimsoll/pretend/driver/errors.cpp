#include <string>

#include "plimsoll/pretend/driver/driver.h"

using namespace plimsoll::pretend;

namespace {

struct ErrorText {
  CUresult error;
  const char* name;
  const char* text;
};

#define PLIMSOLL_ERROR(name, text) \
  { name, #name, text }
constexpr ErrorText kErrors[] = {
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
    PLIMSOLL_ERROR(CUDA_ERROR_UNKNOWN, "unknown error"),
};
#undef PLIMSOLL_ERROR

const ErrorText* find(CUresult error) {
  for (const ErrorText& entry : kErrors) {
    if (entry.error == error) return &entry;
  }
  return nullptr;
}

}  // namespace

PLIMSOLL_API CUresult cuGetErrorName(CUresult error, const char** name) {
  const ErrorText* found = find(error);
  *name = found != nullptr ? found->name : nullptr;
  return found != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

PLIMSOLL_API CUresult cuGetErrorString(CUresult error, const char** text) {
  if (error == CUDA_ERROR_NOT_SUPPORTED && *last_unpretended("cu") != '\0') {
    thread_local std::string message;
    message = std::string(last_unpretended("cu")) + " is not pretended by Plimsoll";
    *text = message.c_str();
    return CUDA_SUCCESS;
  }
  const ErrorText* found = find(error);
  *text = found != nullptr ? found->text : nullptr;
  return found != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
