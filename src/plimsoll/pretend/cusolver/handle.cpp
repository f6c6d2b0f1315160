#include "plimsoll/pretend/cuda/library_types.h"
#include "plimsoll/pretend/cusolver/abi.h"
#include "plimsoll/pretend/model/machine.h"

using namespace plimsoll::pretend;
using namespace plimsoll::pretend::cusolver;

namespace {

/// The result of a Jacobi iteration: no residual and no sweeps.
template <typename T>
int report(const Handle* handle, const JacobiInfo* info, T* value) {
  if (!alive(handle)) return kNotInitialized;
  return alive(info) ? give(value, 0, kInvalidValue) : kInvalidValue;
}

}  // namespace

PLIMSOLL_API int cusolverDnCreate(Handle** handle) {
  if (!machine().device(current_device()).ensure_context(machine().profile())) return kAllocFailed;
  return Handles::make(handle);
}

PLIMSOLL_API int cusolverDnDestroy(Handle* handle) { return Handles::destroy(handle); }

PLIMSOLL_API int cusolverDnSetStream(Handle* handle, void* stream) { return Handles::set_stream(handle, stream); }
PLIMSOLL_API int cusolverDnGetStream(Handle* handle, void** stream) {
  return Handles::get(handle, &Handle::stream, stream);
}

PLIMSOLL_API int cusolverDnSetDeterministicMode(Handle* handle, int mode) {
  return Handles::set(handle, &Handle::deterministic_mode, mode);
}
PLIMSOLL_API int cusolverDnGetDeterministicMode(Handle* handle, int* mode) {
  return Handles::get(handle, &Handle::deterministic_mode, mode);
}

PLIMSOLL_API int cusolverGetVersion(int* version) { return give(version, kCusolverVersion.number(), kInvalidValue); }

PLIMSOLL_API int cusolverGetProperty(int property, int* value) {
  return kCusolverVersion.part(property, value) ? kSuccess : kInvalidValue;
}

PLIMSOLL_API int cusolverDnCreateParams(Params** params) { return Infos::make(params); }
PLIMSOLL_API int cusolverDnDestroyParams(Params* params) { return Infos::destroy(params); }

/// The choice of an algorithm affects only speed and precision, which the pretend GPU does not have.
PLIMSOLL_API int cusolverDnSetAdvOptions(Params* params, int /*function*/, int /*algorithm*/) {
  return alive(params) ? kSuccess : kInvalidValue;
}

#define PLIMSOLL_CUSOLVER_JACOBI(Name, name)                                                            \
  PLIMSOLL_API int cusolverDnCreate##Name##Info(JacobiInfo** info) { return Infos::make(info); }        \
  PLIMSOLL_API int cusolverDnDestroy##Name##Info(JacobiInfo* info) { return Infos::destroy(info); }     \
  PLIMSOLL_API int cusolverDnX##name##SetTolerance(JacobiInfo* info, double tolerance) {                \
    return Infos::set(info, &JacobiInfo::tolerance, tolerance);                                         \
  }                                                                                                     \
  PLIMSOLL_API int cusolverDnX##name##SetMaxSweeps(JacobiInfo* info, int sweeps) {                      \
    return Infos::set(info, &JacobiInfo::max_sweeps, sweeps);                                           \
  }                                                                                                     \
  PLIMSOLL_API int cusolverDnX##name##SetSortEig(JacobiInfo* info, int sort) {                          \
    return Infos::set(info, &JacobiInfo::sort, sort);                                                   \
  }                                                                                                     \
  PLIMSOLL_API int cusolverDnX##name##GetResidual(Handle* handle, JacobiInfo* info, double* residual) { \
    return report(handle, info, residual);                                                              \
  }                                                                                                     \
  PLIMSOLL_API int cusolverDnX##name##GetSweeps(Handle* handle, JacobiInfo* info, int* sweeps) {        \
    return report(handle, info, sweeps);                                                                \
  }
PLIMSOLL_CUSOLVER_JACOBI(Gesvdj, gesvdj)
PLIMSOLL_CUSOLVER_JACOBI(Syevj, syevj)
