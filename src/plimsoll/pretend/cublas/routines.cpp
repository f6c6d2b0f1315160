// The routines of levels 1 to 3 except the products: those that only put work on the stream, and those that return a
// number.

#include "plimsoll/pretend/cublas/abi.h"
#include "plimsoll/pretend/cuda/library_types.h"

namespace {

using namespace plimsoll;
using namespace plimsoll::pretend;
using namespace plimsoll::pretend::cublas;

/// A reduction. In host pointer mode the call waits for its result: a read-back of zeros.
int reduce(const char* function, const Handle* handle, void* result, Bytes bytes) {
  const int status = Handles::enqueue(function, handle);
  if (status != kSuccess) return status;
  if (result == nullptr) return kInvalidValue;
  if (handle->pointer_mode.load(std::memory_order_relaxed) != kHostPointers || !is_host(result)) return kSuccess;
  enqueue_read_back(function, nullptr, {result, bytes, bytes}, handle->stream.load(std::memory_order_relaxed));
  return kSuccess;
}

/// The index of an extreme value, from 1. Of zeros it is the first; of an empty vector, 0.
int locate(const char* function, const Handle* handle, int n, int* result) {
  const int status = reduce(function, handle, result, sizeof *result);
  const bool host = status == kSuccess && handle->pointer_mode.load(std::memory_order_relaxed) == kHostPointers;
  if (host && is_host(result)) *result = n > 0 ? 1 : 0;
  return status;
}

/// Routines on arrays of matrices report bad arguments through a host integer: always success here.
int enqueue_batched(const char* function, const Handle* handle, int* host_info) {
  const int status = Handles::enqueue(function, handle);
  if (status == kSuccess && is_host(host_info)) *host_info = 0;
  return status;
}

}  // namespace

#define PLIMSOLL_CUBLAS_CALL(name) \
  PLIMSOLL_API int name(Handle* handle) { return Handles::enqueue(#name, handle); }
#define PLIMSOLL_CUBLAS_CALLS(T)                \
  PLIMSOLL_CUBLAS_CALL(cublas##T##axpy_v2)      \
  PLIMSOLL_CUBLAS_CALL(cublas##T##copy_v2)      \
  PLIMSOLL_CUBLAS_CALL(cublas##T##swap_v2)      \
  PLIMSOLL_CUBLAS_CALL(cublas##T##scal_v2)      \
  PLIMSOLL_CUBLAS_CALL(cublas##T##rot_v2)       \
  PLIMSOLL_CUBLAS_CALL(cublas##T##symv_v2)      \
  PLIMSOLL_CUBLAS_CALL(cublas##T##syr_v2)       \
  PLIMSOLL_CUBLAS_CALL(cublas##T##syr2_v2)      \
  PLIMSOLL_CUBLAS_CALL(cublas##T##trmv_v2)      \
  PLIMSOLL_CUBLAS_CALL(cublas##T##trsv_v2)      \
  PLIMSOLL_CUBLAS_CALL(cublas##T##symm_v2)      \
  PLIMSOLL_CUBLAS_CALL(cublas##T##syrk_v2)      \
  PLIMSOLL_CUBLAS_CALL(cublas##T##syr2k_v2)     \
  PLIMSOLL_CUBLAS_CALL(cublas##T##trmm_v2)      \
  PLIMSOLL_CUBLAS_CALL(cublas##T##trsm_v2)      \
  PLIMSOLL_CUBLAS_CALL(cublas##T##trsmBatched)  \
  PLIMSOLL_CUBLAS_CALL(cublas##T##geam)         \
  PLIMSOLL_CUBLAS_CALL(cublas##T##dgmm)         \
  PLIMSOLL_CUBLAS_CALL(cublas##T##getrfBatched) \
  PLIMSOLL_CUBLAS_CALL(cublas##T##getriBatched) \
  PLIMSOLL_CUBLAS_CALL(cublas##T##matinvBatched)
PLIMSOLL_CUBLAS_CALLS(S)
PLIMSOLL_CUBLAS_CALLS(D)
PLIMSOLL_CUBLAS_CALLS(C)
PLIMSOLL_CUBLAS_CALLS(Z)

#define PLIMSOLL_CUBLAS_COMPLEX_CALLS(T)   \
  PLIMSOLL_CUBLAS_CALL(cublas##T##geru_v2) \
  PLIMSOLL_CUBLAS_CALL(cublas##T##gerc_v2) \
  PLIMSOLL_CUBLAS_CALL(cublas##T##hemv_v2) \
  PLIMSOLL_CUBLAS_CALL(cublas##T##her_v2)  \
  PLIMSOLL_CUBLAS_CALL(cublas##T##her2_v2) \
  PLIMSOLL_CUBLAS_CALL(cublas##T##hemm_v2) \
  PLIMSOLL_CUBLAS_CALL(cublas##T##herk_v2) \
  PLIMSOLL_CUBLAS_CALL(cublas##T##her2k_v2)
PLIMSOLL_CUBLAS_COMPLEX_CALLS(C)
PLIMSOLL_CUBLAS_COMPLEX_CALLS(Z)

PLIMSOLL_CUBLAS_CALL(cublasSger_v2)
PLIMSOLL_CUBLAS_CALL(cublasDger_v2)
PLIMSOLL_CUBLAS_CALL(cublasSrotm_v2)
PLIMSOLL_CUBLAS_CALL(cublasDrotm_v2)
PLIMSOLL_CUBLAS_CALL(cublasCsrot_v2)
PLIMSOLL_CUBLAS_CALL(cublasZdrot_v2)
PLIMSOLL_CUBLAS_CALL(cublasCsscal_v2)
PLIMSOLL_CUBLAS_CALL(cublasZdscal_v2)
PLIMSOLL_CUBLAS_CALL(cublasAxpyEx)
PLIMSOLL_CUBLAS_CALL(cublasScalEx)

#define PLIMSOLL_CUBLAS_DOT(name, bytes)                                                                             \
  PLIMSOLL_API int name(Handle* handle, int /*n*/, const void* /*x*/, int /*incx*/, const void* /*y*/, int /*incy*/, \
                        void* result) {                                                                              \
    return reduce(#name, handle, result, bytes);                                                                     \
  }
PLIMSOLL_CUBLAS_DOT(cublasSdot_v2, 4)
PLIMSOLL_CUBLAS_DOT(cublasDdot_v2, 8)
PLIMSOLL_CUBLAS_DOT(cublasCdotu_v2, 8)
PLIMSOLL_CUBLAS_DOT(cublasCdotc_v2, 8)
PLIMSOLL_CUBLAS_DOT(cublasZdotu_v2, 16)
PLIMSOLL_CUBLAS_DOT(cublasZdotc_v2, 16)

#define PLIMSOLL_CUBLAS_DOT_EX(name)                                                                                   \
  PLIMSOLL_API int name(Handle* handle, int /*n*/, const void* /*x*/, int /*x_type*/, int /*incx*/, const void* /*y*/, \
                        int /*y_type*/, int /*incy*/, void* result, int result_type) {                                 \
    return reduce(#name, handle, result, bytes_of(result_type));                                                       \
  }
PLIMSOLL_CUBLAS_DOT_EX(cublasDotEx)
PLIMSOLL_CUBLAS_DOT_EX(cublasDotcEx)

#define PLIMSOLL_CUBLAS_NORM(name, bytes)                                                           \
  PLIMSOLL_API int name(Handle* handle, int /*n*/, const void* /*x*/, int /*incx*/, void* result) { \
    return reduce(#name, handle, result, bytes);                                                    \
  }
PLIMSOLL_CUBLAS_NORM(cublasSnrm2_v2, 4)
PLIMSOLL_CUBLAS_NORM(cublasDnrm2_v2, 8)
PLIMSOLL_CUBLAS_NORM(cublasScnrm2_v2, 4)
PLIMSOLL_CUBLAS_NORM(cublasDznrm2_v2, 8)
PLIMSOLL_CUBLAS_NORM(cublasSasum_v2, 4)
PLIMSOLL_CUBLAS_NORM(cublasDasum_v2, 8)
PLIMSOLL_CUBLAS_NORM(cublasScasum_v2, 4)
PLIMSOLL_CUBLAS_NORM(cublasDzasum_v2, 8)

#define PLIMSOLL_CUBLAS_EXTREME(name)                                                          \
  PLIMSOLL_API int name(Handle* handle, int n, const void* /*x*/, int /*incx*/, int* result) { \
    return locate(#name, handle, n, result);                                                   \
  }
PLIMSOLL_CUBLAS_EXTREME(cublasIsamax_v2)
PLIMSOLL_CUBLAS_EXTREME(cublasIdamax_v2)
PLIMSOLL_CUBLAS_EXTREME(cublasIcamax_v2)
PLIMSOLL_CUBLAS_EXTREME(cublasIzamax_v2)
PLIMSOLL_CUBLAS_EXTREME(cublasIsamin_v2)
PLIMSOLL_CUBLAS_EXTREME(cublasIdamin_v2)
PLIMSOLL_CUBLAS_EXTREME(cublasIcamin_v2)
PLIMSOLL_CUBLAS_EXTREME(cublasIzamin_v2)

// The info of getrfBatched, getriBatched and matinvBatched is on the device; these three have a host info.
#define PLIMSOLL_CUBLAS_BATCHED(T)                                                                                    \
  PLIMSOLL_API int cublas##T##geqrfBatched(Handle* handle, int /*m*/, int /*n*/, void* /*a*/, int /*lda*/,            \
                                           void* /*tau*/, int* info) {                                                \
    return enqueue_batched("cublas" #T "geqrfBatched", handle, info);                                                 \
  }                                                                                                                   \
  PLIMSOLL_API int cublas##T##gelsBatched(Handle* handle, int /*trans*/, int /*m*/, int /*n*/, int /*nrhs*/,          \
                                          void* /*a*/, int /*lda*/, void* /*c*/, int /*ldc*/, int* info) {            \
    return enqueue_batched("cublas" #T "gelsBatched", handle, info);                                                  \
  }                                                                                                                   \
  PLIMSOLL_API int cublas##T##getrsBatched(Handle* handle, int /*trans*/, int /*n*/, int /*nrhs*/, const void* /*a*/, \
                                           int /*lda*/, const int* /*pivots*/, void* /*b*/, int /*ldb*/, int* info) { \
    return enqueue_batched("cublas" #T "getrsBatched", handle, info);                                                 \
  }
PLIMSOLL_CUBLAS_BATCHED(S)
PLIMSOLL_CUBLAS_BATCHED(D)
PLIMSOLL_CUBLAS_BATCHED(C)
PLIMSOLL_CUBLAS_BATCHED(Z)
