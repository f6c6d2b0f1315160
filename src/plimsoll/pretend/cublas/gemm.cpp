// Matrix products, reported with their sizes. Arguments after the last necessary one are not declared: the calling
// conventions of x86-64 and AArch64 let a callee ignore them.

#include "plimsoll/pretend/cublas/abi.h"

namespace {

using namespace plimsoll::pretend;
using namespace plimsoll::pretend::cublas;

int multiply(const char* function, const Handle* handle, const Gemm& gemm) {
  if (!alive(handle)) return kNotInitialized;
  if (gemm.m < 0 || gemm.n < 0 || gemm.k < 0 || gemm.batch < 0) return kInvalidValue;
  enqueue_gemm(function, handle->stream.load(std::memory_order_relaxed), gemm);
  return kSuccess;
}

/// op(A) times a vector; A is rows×cols before `operation`.
int multiply_vector(const char* function, const Handle* handle, int operation, std::int64_t rows, std::int64_t cols,
                    std::int64_t batch) {
  const bool transposed = operation != kNoTranspose;
  return multiply(function, handle,
                  {.m = transposed ? cols : rows, .n = 1, .k = transposed ? rows : cols, .batch = batch});
}

/// The arrays are host memory, one entry a group.
int multiply_groups(const char* function, const Handle* handle, const int* m, const int* n, const int* k, int groups,
                    const int* group_sizes) {
  if (!alive(handle)) return kNotInitialized;
  if (groups < 0 || (groups > 0 && !(m && n && k && group_sizes))) return kInvalidValue;
  for (int group = 0; group < groups; ++group) {
    const int status =
        multiply(function, handle, {.m = m[group], .n = n[group], .k = k[group], .batch = group_sizes[group]});
    if (status != kSuccess) return status;
  }
  return kSuccess;
}

}  // namespace

// Defines the functions of the library's 32-bit and 64-bit interfaces: Int is the type of sizes, suffix distinguishes
// the names.
#define PLIMSOLL_CUBLAS_GEMM(name, Int)                                                        \
  PLIMSOLL_API int name(Handle* handle, int /*transa*/, int /*transb*/, Int m, Int n, Int k) { \
    return multiply(#name, handle, {.m = m, .n = n, .k = k});                                  \
  }
#define PLIMSOLL_CUBLAS_GEMM_BATCHED(name, Int)                                                                     \
  PLIMSOLL_API int name(Handle* handle, int /*transa*/, int /*transb*/, Int m, Int n, Int k, const void* /*alpha*/, \
                        const void* /*a*/, Int /*lda*/, const void* /*b*/, Int /*ldb*/, const void* /*beta*/,       \
                        void* /*c*/, Int /*ldc*/, Int batch) {                                                      \
    return multiply(#name, handle, {.m = m, .n = n, .k = k, .batch = batch});                                       \
  }
#define PLIMSOLL_CUBLAS_GEMM_STRIDED(name, Int)                                                                     \
  PLIMSOLL_API int name(Handle* handle, int /*transa*/, int /*transb*/, Int m, Int n, Int k, const void* /*alpha*/, \
                        const void* /*a*/, Int /*lda*/, long long /*stride_a*/, const void* /*b*/, Int /*ldb*/,     \
                        long long /*stride_b*/, const void* /*beta*/, void* /*c*/, Int /*ldc*/,                     \
                        long long /*stride_c*/, Int batch) {                                                        \
    return multiply(#name, handle, {.m = m, .n = n, .k = k, .batch = batch});                                       \
  }
#define PLIMSOLL_CUBLAS_GEMM_BATCHED_EX(name, Int)                                                                  \
  PLIMSOLL_API int name(Handle* handle, int /*transa*/, int /*transb*/, Int m, Int n, Int k, const void* /*alpha*/, \
                        const void* /*a*/, int /*a_type*/, Int /*lda*/, const void* /*b*/, int /*b_type*/,          \
                        Int /*ldb*/, const void* /*beta*/, void* /*c*/, int /*c_type*/, Int /*ldc*/, Int batch) {   \
    return multiply(#name, handle, {.m = m, .n = n, .k = k, .batch = batch});                                       \
  }
#define PLIMSOLL_CUBLAS_GEMM_STRIDED_EX(name, Int)                                                                  \
  PLIMSOLL_API int name(Handle* handle, int /*transa*/, int /*transb*/, Int m, Int n, Int k, const void* /*alpha*/, \
                        const void* /*a*/, int /*a_type*/, Int /*lda*/, long long /*stride_a*/, const void* /*b*/,  \
                        int /*b_type*/, Int /*ldb*/, long long /*stride_b*/, const void* /*beta*/, void* /*c*/,     \
                        int /*c_type*/, Int /*ldc*/, long long /*stride_c*/, Int batch) {                           \
    return multiply(#name, handle, {.m = m, .n = n, .k = k, .batch = batch});                                       \
  }
#define PLIMSOLL_CUBLAS_GEMV(name, Int)                                      \
  PLIMSOLL_API int name(Handle* handle, int operation, Int rows, Int cols) { \
    return multiply_vector(#name, handle, operation, rows, cols, 1);         \
  }
#define PLIMSOLL_CUBLAS_BOTH(DEFINE, name) DEFINE(name, int) DEFINE(name##_64, std::int64_t)

// H is half precision, the 3m variants compute complex products with three real ones.
#define PLIMSOLL_CUBLAS_TYPES(X) X(S) X(D) X(C) X(Z)
#define PLIMSOLL_CUBLAS_TYPED(T)                                                    \
  PLIMSOLL_CUBLAS_BOTH(PLIMSOLL_CUBLAS_GEMM, cublas##T##gemm_v2)                    \
  PLIMSOLL_CUBLAS_BOTH(PLIMSOLL_CUBLAS_GEMM_BATCHED, cublas##T##gemmBatched)        \
  PLIMSOLL_CUBLAS_BOTH(PLIMSOLL_CUBLAS_GEMM_STRIDED, cublas##T##gemmStridedBatched) \
  PLIMSOLL_CUBLAS_BOTH(PLIMSOLL_CUBLAS_GEMV, cublas##T##gemv_v2)
PLIMSOLL_CUBLAS_TYPES(PLIMSOLL_CUBLAS_TYPED)

PLIMSOLL_CUBLAS_BOTH(PLIMSOLL_CUBLAS_GEMM, cublasHgemm)
PLIMSOLL_CUBLAS_BOTH(PLIMSOLL_CUBLAS_GEMM_BATCHED, cublasHgemmBatched)
PLIMSOLL_CUBLAS_BOTH(PLIMSOLL_CUBLAS_GEMM_STRIDED, cublasHgemmStridedBatched)
PLIMSOLL_CUBLAS_BOTH(PLIMSOLL_CUBLAS_GEMM, cublasCgemm3m)
PLIMSOLL_CUBLAS_BOTH(PLIMSOLL_CUBLAS_GEMM, cublasZgemm3m)
PLIMSOLL_CUBLAS_BOTH(PLIMSOLL_CUBLAS_GEMM_STRIDED, cublasCgemm3mStridedBatched)
PLIMSOLL_CUBLAS_BOTH(PLIMSOLL_CUBLAS_GEMM, cublasSgemmEx)
PLIMSOLL_CUBLAS_BOTH(PLIMSOLL_CUBLAS_GEMM, cublasCgemmEx)
PLIMSOLL_CUBLAS_BOTH(PLIMSOLL_CUBLAS_GEMM, cublasGemmEx)
PLIMSOLL_CUBLAS_BOTH(PLIMSOLL_CUBLAS_GEMM_BATCHED_EX, cublasGemmBatchedEx)
PLIMSOLL_CUBLAS_BOTH(PLIMSOLL_CUBLAS_GEMM_STRIDED_EX, cublasGemmStridedBatchedEx)

#define PLIMSOLL_CUBLAS_GROUPED(name)                                                                                  \
  PLIMSOLL_API int name(Handle* handle, const int* /*transa*/, const int* /*transb*/, const int* m, const int* n,      \
                        const int* k, const void* /*alpha*/, const void* /*a*/, const int* /*lda*/, const void* /*b*/, \
                        const int* /*ldb*/, const void* /*beta*/, void* /*c*/, const int* /*ldc*/, int groups,         \
                        const int* group_sizes) {                                                                      \
    return multiply_groups(#name, handle, m, n, k, groups, group_sizes);                                               \
  }
PLIMSOLL_CUBLAS_GROUPED(cublasSgemmGroupedBatched)
PLIMSOLL_CUBLAS_GROUPED(cublasDgemmGroupedBatched)

PLIMSOLL_API int cublasGemmGroupedBatchedEx(Handle* handle, const int* /*transa*/, const int* /*transb*/, const int* m,
                                            const int* n, const int* k, const void* /*alpha*/, const void* /*a*/,
                                            int /*a_type*/, const int* /*lda*/, const void* /*b*/, int /*b_type*/,
                                            const int* /*ldb*/, const void* /*beta*/, void* /*c*/, int /*c_type*/,
                                            const int* /*ldc*/, int groups, const int* group_sizes) {
  return multiply_groups("cublasGemmGroupedBatchedEx", handle, m, n, k, groups, group_sizes);
}
