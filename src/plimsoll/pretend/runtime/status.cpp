#include "plimsoll/pretend/runtime/status.h"

#include "plimsoll/pretend/cuda/error_text.h"

namespace plimsoll::pretend::runtime {
namespace {

thread_local cudaError_t t_last = cudaSuccess;

constexpr ErrorText<cudaError_t> kErrors[] = {
    PLIMSOLL_ERROR(cudaSuccess, "no error"),
    PLIMSOLL_ERROR(cudaErrorInvalidValue, "invalid argument"),
    PLIMSOLL_ERROR(cudaErrorMemoryAllocation, "out of memory"),
    PLIMSOLL_ERROR(cudaErrorInitializationError, "initialization error"),
    PLIMSOLL_ERROR(cudaErrorInvalidConfiguration, "invalid launch configuration"),
    PLIMSOLL_ERROR(cudaErrorInvalidSymbol, "invalid device symbol"),
    PLIMSOLL_ERROR(cudaErrorInvalidDevice, "invalid device ordinal"),
    PLIMSOLL_ERROR(cudaErrorInvalidDeviceFunction, "invalid device function"),
    PLIMSOLL_ERROR(cudaErrorInvalidResourceHandle, "invalid resource handle"),
    PLIMSOLL_ERROR(cudaErrorNotReady, "not ready"),
    PLIMSOLL_ERROR(cudaErrorPeerAccessUnsupported, "peer access is not supported between two devices"),
    PLIMSOLL_ERROR(cudaErrorPeerAccessAlreadyEnabled, "peer access is already enabled"),
    PLIMSOLL_ERROR(cudaErrorPeerAccessNotEnabled, "peer access was not enabled"),
    PLIMSOLL_ERROR(cudaErrorHostMemoryAlreadyRegistered, "host memory is already registered"),
    PLIMSOLL_ERROR(cudaErrorHostMemoryNotRegistered, "host memory is not registered"),
    PLIMSOLL_ERROR(cudaErrorSymbolNotFound, "symbol not found"),
    PLIMSOLL_ERROR(cudaErrorNotSupported, "not supported"),
    PLIMSOLL_ERROR(cudaErrorStreamCaptureUnsupported, "not permitted while a stream is captured"),
    PLIMSOLL_ERROR(cudaErrorStreamCaptureInvalidated, "the capture failed because of an earlier error"),
    PLIMSOLL_ERROR(cudaErrorStreamCaptureMerge, "the wait would join two captures"),
    PLIMSOLL_ERROR(cudaErrorStreamCaptureUnjoined, "work of another stream was not joined to the captured one"),
    PLIMSOLL_ERROR(cudaErrorStreamCaptureUnmatched, "the capture did not begin in this stream"),
    PLIMSOLL_ERROR(cudaErrorStreamCaptureImplicit, "not permitted on the default stream while another is captured"),
    PLIMSOLL_ERROR(cudaErrorIllegalState, "illegal state"),
    PLIMSOLL_ERROR(cudaErrorUnknown, "unknown error"),
};

}  // namespace

cudaError_t status(cudaError_t error) {
  if (error != cudaSuccess && error != cudaErrorNotReady) t_last = error;
  return error;
}

cudaError_t refused(const char* function) {
  return status(static_cast<cudaError_t>(unpretended(function, cudaErrorNotSupported)));
}

}  // namespace plimsoll::pretend::runtime

using namespace plimsoll::pretend;
using namespace plimsoll::pretend::runtime;

PLIMSOLL_API cudaError_t cudaGetLastError() {
  const cudaError_t error = t_last;
  t_last = cudaSuccess;
  return error;
}

PLIMSOLL_API cudaError_t cudaPeekAtLastError() { return t_last; }

PLIMSOLL_API const char* cudaGetErrorName(cudaError_t error) {
  const auto* found = find_error(kErrors, error);
  return found != nullptr ? found->name : "unrecognized error code";
}

PLIMSOLL_API const char* cudaGetErrorString(cudaError_t error) {
  if (error == cudaErrorNotSupported) {
    if (const char* text = unpretended_text("cuda")) return text;
  }
  const auto* found = find_error(kErrors, error);
  return found != nullptr ? found->text : "unrecognized error code";
}
