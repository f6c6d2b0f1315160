// The typed interface: cusolverDn, a letter for the type, LAPACK's name. The info of a factorisation is on the device
// and is read back as zero: success.

#include <algorithm>
#include <limits>

#include "plimsoll/pretend/cusolver/abi.h"
#include "plimsoll/pretend/cusolver/work_sizes.h"

namespace {

using namespace plimsoll::pretend;
using namespace plimsoll::pretend::cusolver;

int answer(const Handle* handle, bool valid, int* out, work::Count elements) {
  if (!alive(handle)) return kNotInitialized;
  if (!valid || out == nullptr) return kInvalidValue;
  *out = static_cast<int>(std::min<work::Count>(elements, std::numeric_limits<int>::max()));
  return kSuccess;
}

bool sized(int m, int n, int batch = 0) { return m >= 0 && n >= 0 && batch >= 0; }

}  // namespace

// Factorisations and solves. `q` is LAPACK's stem for orthogonal (org, orm) or unitary (ung, unm) matrices.
#define PLIMSOLL_CUSOLVER_FACTOR(T, q, qm)                                                                            \
  PLIMSOLL_CUSOLVER_CALL(cusolverDn##T##potrf)                                                                        \
  PLIMSOLL_CUSOLVER_CALL(cusolverDn##T##potrs)                                                                        \
  PLIMSOLL_CUSOLVER_CALL(cusolverDn##T##potrfBatched)                                                                 \
  PLIMSOLL_CUSOLVER_CALL(cusolverDn##T##potrsBatched)                                                                 \
  PLIMSOLL_CUSOLVER_CALL(cusolverDn##T##getrf)                                                                        \
  PLIMSOLL_CUSOLVER_CALL(cusolverDn##T##getrs)                                                                        \
  PLIMSOLL_CUSOLVER_CALL(cusolverDn##T##geqrf)                                                                        \
  PLIMSOLL_CUSOLVER_CALL(cusolverDn##T##q##qr)                                                                        \
  PLIMSOLL_CUSOLVER_CALL(cusolverDn##T##qm##qr)                                                                       \
  PLIMSOLL_CUSOLVER_CALL(cusolverDn##T##sytrf)                                                                        \
  PLIMSOLL_API int cusolverDn##T##potrf_bufferSize(Handle* handle, int /*uplo*/, int n, void* /*a*/, int /*lda*/,     \
                                                   int* lwork) {                                                      \
    return answer(handle, n >= 0, lwork, work::potrf(n));                                                             \
  }                                                                                                                   \
  PLIMSOLL_API int cusolverDn##T##getrf_bufferSize(Handle* handle, int m, int n, void* /*a*/, int /*lda*/,            \
                                                   int* lwork) {                                                      \
    return answer(handle, sized(m, n), lwork, work::getrf(m, n));                                                     \
  }                                                                                                                   \
  PLIMSOLL_API int cusolverDn##T##geqrf_bufferSize(Handle* handle, int m, int n, void* /*a*/, int /*lda*/,            \
                                                   int* lwork) {                                                      \
    return answer(handle, sized(m, n), lwork, work::geqrf(m, n));                                                     \
  }                                                                                                                   \
  PLIMSOLL_API int cusolverDn##T##q##qr_bufferSize(Handle* handle, int m, int n, int /*k*/, const void* /*a*/,        \
                                                   int /*lda*/, const void* /*tau*/, int* lwork) {                    \
    return answer(handle, sized(m, n), lwork, work::orgqr(n));                                                        \
  }                                                                                                                   \
  PLIMSOLL_API int cusolverDn##T##qm##qr_bufferSize(Handle* handle, int side, int /*trans*/, int m, int n, int /*k*/, \
                                                    const void* /*a*/, int /*lda*/, const void* /*tau*/,              \
                                                    const void* /*c*/, int /*ldc*/, int* lwork) {                     \
    return answer(handle, sized(m, n), lwork, work::ormqr(side, m, n));                                               \
  }                                                                                                                   \
  PLIMSOLL_API int cusolverDn##T##sytrf_bufferSize(Handle* handle, int n, void* /*a*/, int /*lda*/, int* lwork) {     \
    return answer(handle, n >= 0, lwork, work::sytrf(n));                                                             \
  }
PLIMSOLL_CUSOLVER_FACTOR(S, org, orm)
PLIMSOLL_CUSOLVER_FACTOR(D, org, orm)
PLIMSOLL_CUSOLVER_FACTOR(C, ung, unm)
PLIMSOLL_CUSOLVER_FACTOR(Z, ung, unm)

// Eigenvalues of symmetric (sy) or Hermitian (he) matrices.
#define PLIMSOLL_CUSOLVER_EIGEN(T, h)                                                                                 \
  PLIMSOLL_CUSOLVER_CALL(cusolverDn##T##h##evd)                                                                       \
  PLIMSOLL_CUSOLVER_CALL(cusolverDn##T##h##evj)                                                                       \
  PLIMSOLL_CUSOLVER_CALL(cusolverDn##T##h##evjBatched)                                                                \
  PLIMSOLL_API int cusolverDn##T##h##evd_bufferSize(Handle* handle, int mode, int /*uplo*/, int n, const void* /*a*/, \
                                                    int /*lda*/, const void* /*w*/, int* lwork) {                     \
    return answer(handle, n >= 0, lwork, work::syevd(mode, n));                                                       \
  }                                                                                                                   \
  PLIMSOLL_API int cusolverDn##T##h##evj_bufferSize(Handle* handle, int /*mode*/, int /*uplo*/, int n,                \
                                                    const void* /*a*/, int /*lda*/, const void* /*w*/, int* lwork,    \
                                                    const JacobiInfo* info) {                                         \
    return answer(handle, n >= 0 && alive(info), lwork, work::syevj(n));                                              \
  }                                                                                                                   \
  PLIMSOLL_API int cusolverDn##T##h##evjBatched_bufferSize(Handle* handle, int /*mode*/, int /*uplo*/, int n,         \
                                                           const void* /*a*/, int /*lda*/, const void* /*w*/,         \
                                                           int* lwork, const JacobiInfo* info, int batch) {           \
    return answer(handle, sized(n, n, batch) && alive(info), lwork, work::syevj_batched(n, batch));                   \
  }
PLIMSOLL_CUSOLVER_EIGEN(S, sy)
PLIMSOLL_CUSOLVER_EIGEN(D, sy)
PLIMSOLL_CUSOLVER_EIGEN(C, he)
PLIMSOLL_CUSOLVER_EIGEN(Z, he)

// Singular values. gesvda optionally returns the error of each decomposition to the host: zero.
#define PLIMSOLL_CUSOLVER_SINGULAR(T)                                                                                  \
  PLIMSOLL_CUSOLVER_CALL(cusolverDn##T##gesvd)                                                                         \
  PLIMSOLL_CUSOLVER_CALL(cusolverDn##T##gesvdj)                                                                        \
  PLIMSOLL_CUSOLVER_CALL(cusolverDn##T##gesvdjBatched)                                                                 \
  PLIMSOLL_API int cusolverDn##T##gesvd_bufferSize(Handle* handle, int m, int n, int* lwork) {                         \
    return answer(handle, sized(m, n), lwork, work::gesvd(m, n));                                                      \
  }                                                                                                                    \
  PLIMSOLL_API int cusolverDn##T##gesvdj_bufferSize(                                                                   \
      Handle* handle, int /*mode*/, int /*econ*/, int m, int n, const void* /*a*/, int /*lda*/, const void* /*s*/,     \
      const void* /*u*/, int /*ldu*/, const void* /*v*/, int /*ldv*/, int* lwork, const JacobiInfo* info) {            \
    return answer(handle, sized(m, n) && alive(info), lwork, work::gesvdj(m, n));                                      \
  }                                                                                                                    \
  PLIMSOLL_API int cusolverDn##T##gesvdjBatched_bufferSize(                                                            \
      Handle* handle, int /*mode*/, int m, int n, const void* /*a*/, int /*lda*/, const void* /*s*/,                   \
      const void* /*u*/, int /*ldu*/, const void* /*v*/, int /*ldv*/, int* lwork, const JacobiInfo* info, int batch) { \
    return answer(handle, sized(m, n, batch) && alive(info), lwork, work::gesvdj_batched(m, n, batch));                \
  }                                                                                                                    \
  PLIMSOLL_API int cusolverDn##T##gesvdaStridedBatched_bufferSize(                                                     \
      Handle* handle, int /*mode*/, int /*rank*/, int m, int n, const void* /*a*/, int /*lda*/, long long /*as*/,      \
      const void* /*s*/, long long /*ss*/, const void* /*u*/, int /*ldu*/, long long /*us*/, const void* /*v*/,        \
      int /*ldv*/, long long /*vs*/, int* lwork, int batch) {                                                          \
    return answer(handle, sized(m, n, batch), lwork, work::gesvda_batched(m, n, batch));                               \
  }                                                                                                                    \
  PLIMSOLL_API int cusolverDn##T##gesvdaStridedBatched(                                                                \
      Handle* handle, int /*mode*/, int /*rank*/, int m, int n, const void* /*a*/, int /*lda*/, long long /*as*/,      \
      void* /*s*/, long long /*ss*/, void* /*u*/, int /*ldu*/, long long /*us*/, void* /*v*/, int /*ldv*/,             \
      long long /*vs*/, void* /*work*/, int /*lwork*/, int* /*info*/, double* residuals, int batch) {                  \
    if (alive(handle) && !sized(m, n, batch)) return kInvalidValue;                                                    \
    const int status = Handles::enqueue("cusolverDn" #T "gesvdaStridedBatched", handle);                               \
    if (status == kSuccess && is_host(residuals)) std::fill_n(residuals, batch, 0.0);                                  \
    return status;                                                                                                     \
  }
PLIMSOLL_CUSOLVER_SINGULAR(S)
PLIMSOLL_CUSOLVER_SINGULAR(D)
PLIMSOLL_CUSOLVER_SINGULAR(C)
PLIMSOLL_CUSOLVER_SINGULAR(Z)
