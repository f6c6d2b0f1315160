// The interface with 64-bit sizes: types are arguments, and the workspace sizes, in bytes, are for the device and the
// host.

#include "plimsoll/pretend/cuda/library_types.h"
#include "plimsoll/pretend/cusolver/abi.h"
#include "plimsoll/pretend/cusolver/work_sizes.h"

namespace {

using namespace plimsoll;
using namespace plimsoll::pretend;
using namespace plimsoll::pretend::cusolver;
using work::Count;

struct Workspace {
  std::size_t* device;
  std::size_t* host;
};

/// Null means the defaults; torch passes null to some routines.
bool usable(const Params* params) { return params == nullptr || alive(params); }

/// `type` is that of the matrix; an unknown cudaDataType is refused.
int answer(const Handle* handle, bool valid, int type, Count device_elements, Count host_elements, Workspace out) {
  if (!alive(handle)) return kNotInitialized;
  const Bytes element = bytes_of(type);
  if (!valid || element == 0 || out.device == nullptr || out.host == nullptr) return kInvalidValue;
  *out.device = static_cast<Bytes>(device_elements) * element;
  *out.host = static_cast<Bytes>(host_elements) * element;
  return kSuccess;
}

}  // namespace

PLIMSOLL_CUSOLVER_CALL(cusolverDnXpotrf)
PLIMSOLL_CUSOLVER_CALL(cusolverDnXpotrs)
PLIMSOLL_CUSOLVER_CALL(cusolverDnXgetrf)
PLIMSOLL_CUSOLVER_CALL(cusolverDnXgetrs)
PLIMSOLL_CUSOLVER_CALL(cusolverDnXgeqrf)
PLIMSOLL_CUSOLVER_CALL(cusolverDnXsytrs)
PLIMSOLL_CUSOLVER_CALL(cusolverDnXsyevd)
PLIMSOLL_CUSOLVER_CALL(cusolverDnXsyevBatched)
PLIMSOLL_CUSOLVER_CALL(cusolverDnXgeev)
PLIMSOLL_CUSOLVER_CALL(cusolverDnXgesvd)

PLIMSOLL_API int cusolverDnXpotrf_bufferSize(Handle* handle, const Params* params, int /*uplo*/, std::int64_t n,
                                             int type, const void* /*a*/, std::int64_t /*lda*/, int /*compute_type*/,
                                             std::size_t* device, std::size_t* host) {
  return answer(handle, usable(params) && n >= 0, type, work::potrf(n), 0, {device, host});
}

PLIMSOLL_API int cusolverDnXgetrf_bufferSize(Handle* handle, const Params* params, std::int64_t m, std::int64_t n,
                                             int type, const void* /*a*/, std::int64_t /*lda*/, int /*compute_type*/,
                                             std::size_t* device, std::size_t* host) {
  return answer(handle, usable(params) && m >= 0 && n >= 0, type, work::getrf(m, n), 0, {device, host});
}

PLIMSOLL_API int cusolverDnXgeqrf_bufferSize(Handle* handle, const Params* params, std::int64_t m, std::int64_t n,
                                             int type, const void* /*a*/, std::int64_t /*lda*/, int /*tau_type*/,
                                             const void* /*tau*/, int /*compute_type*/, std::size_t* device,
                                             std::size_t* host) {
  return answer(handle, usable(params) && m >= 0 && n >= 0, type, work::geqrf(m, n), 0, {device, host});
}

PLIMSOLL_API int cusolverDnXsytrs_bufferSize(Handle* handle, int /*uplo*/, std::int64_t n, std::int64_t right_sides,
                                             int type, const void* /*a*/, std::int64_t /*lda*/,
                                             const std::int64_t* /*pivots*/, int /*b_type*/, void* /*b*/,
                                             std::int64_t /*ldb*/, std::size_t* device, std::size_t* host) {
  return answer(handle, n >= 0 && right_sides >= 0, type, work::sytrs(n, right_sides), 0, {device, host});
}

PLIMSOLL_API int cusolverDnXsyevd_bufferSize(Handle* handle, const Params* params, int mode, int /*uplo*/,
                                             std::int64_t n, int type, const void* /*a*/, std::int64_t /*lda*/,
                                             int /*w_type*/, const void* /*w*/, int /*compute_type*/,
                                             std::size_t* device, std::size_t* host) {
  return answer(handle, usable(params) && n >= 0, type, work::syevd(mode, n), 0, {device, host});
}

PLIMSOLL_API int cusolverDnXsyevBatched_bufferSize(Handle* handle, const Params* params, int /*mode*/, int /*uplo*/,
                                                   std::int64_t n, int type, const void* /*a*/, std::int64_t /*lda*/,
                                                   int /*w_type*/, const void* /*w*/, int /*compute_type*/,
                                                   std::size_t* device, std::size_t* host, std::int64_t batch) {
  const bool valid = usable(params) && n >= 0 && batch >= 0;
  return answer(handle, valid, type, work::syevj_batched(n, batch), 0, {device, host});
}

PLIMSOLL_API int cusolverDnXgeev_bufferSize(Handle* handle, const Params* params, int /*mode_left*/, int /*mode_right*/,
                                            std::int64_t n, int type, const void* /*a*/, std::int64_t /*lda*/,
                                            int /*w_type*/, const void* /*w*/, int /*vl_type*/, const void* /*vl*/,
                                            std::int64_t /*ldvl*/, int /*vr_type*/, const void* /*vr*/,
                                            std::int64_t /*ldvr*/, int /*compute_type*/, std::size_t* device,
                                            std::size_t* host) {
  return answer(handle, usable(params) && n >= 0, type, work::geev(n), work::geev_host(n), {device, host});
}

PLIMSOLL_API int cusolverDnXgesvd_bufferSize(Handle* handle, const Params* params, signed char /*jobu*/,
                                             signed char /*jobvt*/, std::int64_t m, std::int64_t n, int type,
                                             const void* /*a*/, std::int64_t /*lda*/, int /*s_type*/, const void* /*s*/,
                                             int /*u_type*/, const void* /*u*/, std::int64_t /*ldu*/, int /*vt_type*/,
                                             const void* /*vt*/, std::int64_t /*ldvt*/, int /*compute_type*/,
                                             std::size_t* device, std::size_t* host) {
  return answer(handle, usable(params) && m >= 0 && n >= 0, type, work::gesvd(m, n), 0, {device, host});
}
