#include "plimsoll/pretend/cublaslt/descriptors.h"
#include "plimsoll/pretend/cuda/library_types.h"

namespace {

using namespace plimsoll::pretend;
using namespace plimsoll::pretend::cublaslt;

/// The sizes of the product: op(A) is m×k, D is m×n. Rows and columns do not depend on the matrix's order in memory.
Gemm gemm_of(const MatmulDescriptor& matmul, const MatrixLayout& a, const MatrixLayout& d) {
  const bool transposed = matmul.attributes.value<std::int32_t>(kMatmulTransA) != kNoTranspose;
  return {.m = d.attributes.value<std::int64_t>(kLayoutRows),
          .n = d.attributes.value<std::int64_t>(kLayoutCols),
          .k = a.attributes.value<std::int64_t>(transposed ? kLayoutRows : kLayoutCols),
          .batch = d.attributes.value<std::int32_t>(kLayoutBatchCount)};
}

}  // namespace

PLIMSOLL_API int cublasLtCreate(HandleHead** handle) { return Handles::make(handle); }
PLIMSOLL_API int cublasLtDestroy(HandleHead* handle) { return Handles::destroy(handle); }

PLIMSOLL_API std::size_t cublasLtGetVersion() { return static_cast<std::size_t>(kCublasVersion.number(10000)); }

PLIMSOLL_API std::size_t cublasLtGetCudartVersion() { return kCuda13 ? 13000 : 12080; }

PLIMSOLL_API int cublasLtGetProperty(int property, int* value) {
  return kCublasVersion.part(property, value) ? kSuccess : kInvalidValue;
}

/// Returns one algorithm that needs no workspace. torch takes the workspace of a call from its own settings
/// (CUBLASLT_WORKSPACE_SIZE, or the workspace of the cuBLAS handle), so the result does not affect memory.
PLIMSOLL_API int cublasLtMatmulAlgoGetHeuristic(HandleHead* handle, MatmulDescriptor* matmul, MatrixLayout* a,
                                                MatrixLayout* b, MatrixLayout* c, MatrixLayout* d,
                                                Preference* preference, int requested, HeuristicResult* results,
                                                int* returned) {
  if (!alive(handle)) return kNotInitialized;
  const bool described = alive(matmul) && alive(a) && alive(b) && alive(c) && alive(d) && alive(preference);
  if (!described || requested < 1 || results == nullptr || returned == nullptr) return kInvalidValue;
  *results = {.state = kSuccess, .waves_count = 1.0F};
  *returned = 1;
  return kSuccess;
}

PLIMSOLL_API int cublasLtMatmulAlgoCheck(HandleHead* handle, MatmulDescriptor* matmul, MatrixLayout* a, MatrixLayout* b,
                                         MatrixLayout* c, MatrixLayout* d, const Algorithm* algorithm,
                                         HeuristicResult* result) {
  if (!alive(handle)) return kNotInitialized;
  const bool described = alive(matmul) && alive(a) && alive(b) && alive(c) && alive(d);
  if (!described || algorithm == nullptr || result == nullptr) return kInvalidValue;
  *result = {.algorithm = *algorithm, .state = kSuccess, .waves_count = 1.0F};
  return kSuccess;
}

PLIMSOLL_API int cublasLtMatmul(HandleHead* handle, MatmulDescriptor* matmul, const void* alpha, const void* /*a*/,
                                MatrixLayout* a_layout, const void* /*b*/, MatrixLayout* b_layout, const void* beta,
                                const void* /*c*/, MatrixLayout* c_layout, void* /*d*/, MatrixLayout* d_layout,
                                const Algorithm* /*algorithm*/, void* /*workspace*/, std::size_t /*workspace_size*/,
                                void* stream) {
  if (!alive(handle)) return kNotInitialized;
  const bool described = alive(matmul) && alive(a_layout) && alive(b_layout) && alive(c_layout) && alive(d_layout);
  if (!described || alpha == nullptr || beta == nullptr) return kInvalidValue;
  enqueue_gemm("cublasLtMatmul", stream, gemm_of(*matmul, *a_layout, *d_layout));
  return kSuccess;
}

PLIMSOLL_API int cublasLtMatrixTransform(HandleHead* handle, TransformDescriptor* transform, const void* /*alpha*/,
                                         const void* /*a*/, MatrixLayout* /*a_layout*/, const void* /*beta*/,
                                         const void* /*b*/, MatrixLayout* /*b_layout*/, void* /*c*/,
                                         MatrixLayout* c_layout, void* stream) {
  if (!alive(handle)) return kNotInitialized;
  if (!alive(transform) || !alive(c_layout)) return kInvalidValue;
  enqueue_call("cublasLtMatrixTransform", stream);
  return kSuccess;
}
