#include <new>

#include "plimsoll/pretend/cuda/library_types.h"
#include "plimsoll/pretend/cusolver/abi.h"
#include "plimsoll/pretend/model/library_call.h"
#include "plimsoll/pretend/model/machine.h"

using namespace plimsoll::pretend;
using namespace plimsoll::pretend::cusolver;

namespace plimsoll::pretend::cusolver {

int enqueue(const char* function, const Handle* handle) {
  if (!alive(handle)) return kNotInitialized;
  enqueue_call(function, handle->stream.load(std::memory_order_relaxed));
  return kSuccess;
}

}  // namespace plimsoll::pretend::cusolver

namespace {

template <typename T>
int make(T** out) {
  if (out == nullptr) return kInvalidValue;
  *out = new (std::nothrow) T;
  return *out != nullptr ? kSuccess : kAllocFailed;
}

template <typename T>
int destroy(T* object, int otherwise) {
  if (!alive(object)) return otherwise;
  object->magic = 0;
  delete object;
  return kSuccess;
}

template <typename T, typename U>
int set(T* object, U T::* member, U value) {
  if (!alive(object)) return kInvalidValue;
  object->*member = value;
  return kSuccess;
}

/// The result of a Jacobi iteration: no residual and no sweeps.
template <typename T>
int report(const Handle* handle, const JacobiInfo* info, T* value) {
  if (!alive(handle)) return kNotInitialized;
  if (!alive(info) || value == nullptr) return kInvalidValue;
  *value = 0;
  return kSuccess;
}

}  // namespace

PLIMSOLL_API int cusolverDnCreate(Handle** handle) {
  if (!machine().device(current_device()).ensure_context(machine().profile())) return kAllocFailed;
  return make(handle);
}

PLIMSOLL_API int cusolverDnDestroy(Handle* handle) { return destroy(handle, kNotInitialized); }

PLIMSOLL_API int cusolverDnSetStream(Handle* handle, void* stream) {
  if (!alive(handle)) return kNotInitialized;
  if (stream_of(stream) == nullptr) return kInvalidValue;
  handle->stream.store(stream, std::memory_order_relaxed);
  return kSuccess;
}

PLIMSOLL_API int cusolverDnGetStream(Handle* handle, void** stream) {
  if (!alive(handle)) return kNotInitialized;
  if (stream == nullptr) return kInvalidValue;
  *stream = handle->stream.load(std::memory_order_relaxed);
  return kSuccess;
}

PLIMSOLL_API int cusolverDnSetDeterministicMode(Handle* handle, int mode) {
  if (!alive(handle)) return kNotInitialized;
  handle->deterministic_mode.store(mode, std::memory_order_relaxed);
  return kSuccess;
}

PLIMSOLL_API int cusolverDnGetDeterministicMode(Handle* handle, int* mode) {
  if (!alive(handle)) return kNotInitialized;
  if (mode == nullptr) return kInvalidValue;
  *mode = handle->deterministic_mode.load(std::memory_order_relaxed);
  return kSuccess;
}

PLIMSOLL_API int cusolverGetVersion(int* version) {
  if (version == nullptr) return kInvalidValue;
  *version = kCusolverVersion.major * 1000 + kCusolverVersion.minor * 100 + kCusolverVersion.patch;
  return kSuccess;
}

PLIMSOLL_API int cusolverGetProperty(int property, int* value) {
  return kCusolverVersion.part(property, value) ? kSuccess : kInvalidValue;
}

PLIMSOLL_API int cusolverDnCreateParams(Params** params) { return make(params); }
PLIMSOLL_API int cusolverDnDestroyParams(Params* params) { return destroy(params, kInvalidValue); }

/// The choice of an algorithm affects only speed and precision, which the pretend GPU does not have.
PLIMSOLL_API int cusolverDnSetAdvOptions(Params* params, int /*function*/, int /*algorithm*/) {
  return alive(params) ? kSuccess : kInvalidValue;
}

#define PLIMSOLL_CUSOLVER_JACOBI(Name, name)                                                                \
  PLIMSOLL_API int cusolverDnCreate##Name##Info(JacobiInfo** info) { return make(info); }                   \
  PLIMSOLL_API int cusolverDnDestroy##Name##Info(JacobiInfo* info) { return destroy(info, kInvalidValue); } \
  PLIMSOLL_API int cusolverDnX##name##SetTolerance(JacobiInfo* info, double tolerance) {                    \
    return set(info, &JacobiInfo::tolerance, tolerance);                                                    \
  }                                                                                                         \
  PLIMSOLL_API int cusolverDnX##name##SetMaxSweeps(JacobiInfo* info, int sweeps) {                          \
    return set(info, &JacobiInfo::max_sweeps, sweeps);                                                      \
  }                                                                                                         \
  PLIMSOLL_API int cusolverDnX##name##SetSortEig(JacobiInfo* info, int sort) {                              \
    return set(info, &JacobiInfo::sort, sort);                                                              \
  }                                                                                                         \
  PLIMSOLL_API int cusolverDnX##name##GetResidual(Handle* handle, JacobiInfo* info, double* residual) {     \
    return report(handle, info, residual);                                                                  \
  }                                                                                                         \
  PLIMSOLL_API int cusolverDnX##name##GetSweeps(Handle* handle, JacobiInfo* info, int* sweeps) {            \
    return report(handle, info, sweeps);                                                                    \
  }
PLIMSOLL_CUSOLVER_JACOBI(Gesvdj, gesvdj)
PLIMSOLL_CUSOLVER_JACOBI(Syevj, syevj)
