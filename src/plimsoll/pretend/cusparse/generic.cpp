// The generic interface: products and triangular solves on descriptors.

#include "plimsoll/pretend/cusparse/abi.h"
#include "plimsoll/pretend/cusparse/buffer_sizes.h"

namespace {

using namespace plimsoll;
using namespace plimsoll::pretend;
using namespace plimsoll::pretend::cusparse;

int answer(const Handle* handle, bool described, std::size_t* out, Bytes bytes) {
  if (!alive(handle)) return kNotInitialized;
  return described ? give(out, bytes, kInvalidValue) : kInvalidValue;
}

}  // namespace

#define PLIMSOLL_CUSPARSE_INFO(name)                                                             \
  PLIMSOLL_API int cusparse##name##_createDescr(Info** info) { return Descriptors::make(info); } \
  PLIMSOLL_API int cusparse##name##_destroyDescr(Info* info) { return Descriptors::destroy_any(info); }
PLIMSOLL_CUSPARSE_INFO(SpGEMM)
PLIMSOLL_CUSPARSE_INFO(SpSV)
PLIMSOLL_CUSPARSE_INFO(SpSM)

#define PLIMSOLL_CUSPARSE_LEGACY_INFO(name)                                                    \
  PLIMSOLL_API int cusparseCreate##name##Info(Info** info) { return Descriptors::make(info); } \
  PLIMSOLL_API int cusparseDestroy##name##Info(Info* info) { return Descriptors::destroy_any(info); }
PLIMSOLL_CUSPARSE_LEGACY_INFO(Bsrsv2)
PLIMSOLL_CUSPARSE_LEGACY_INFO(Bsrsm2)

PLIMSOLL_CUSPARSE_CALL(cusparseSpMV)
PLIMSOLL_CUSPARSE_CALL(cusparseSpMV_preprocess)
PLIMSOLL_CUSPARSE_CALL(cusparseSpMM)
PLIMSOLL_CUSPARSE_CALL(cusparseSpMM_preprocess)
PLIMSOLL_CUSPARSE_CALL(cusparseSDDMM)
PLIMSOLL_CUSPARSE_CALL(cusparseSDDMM_preprocess)
PLIMSOLL_CUSPARSE_CALL(cusparseSpSV_analysis)
PLIMSOLL_CUSPARSE_CALL(cusparseSpSV_solve)
PLIMSOLL_CUSPARSE_CALL(cusparseSpSM_analysis)
PLIMSOLL_CUSPARSE_CALL(cusparseSpSM_solve)
PLIMSOLL_CUSPARSE_CALL(cusparseSpGEMM_copy)

PLIMSOLL_API int cusparseSpMV_bufferSize(Handle* handle, int /*op*/, const void* /*alpha*/, const SparseMatrix* a,
                                         const DenseVector* x, const void* /*beta*/, const DenseVector* y,
                                         int /*compute_type*/, int /*algorithm*/, std::size_t* bytes) {
  const bool described = alive(a) && alive(x) && alive(y);
  return answer(handle, described, bytes, described ? buffers::product(*a) : 0);
}

PLIMSOLL_API int cusparseSpMM_bufferSize(Handle* handle, int /*op_a*/, int /*op_b*/, const void* /*alpha*/,
                                         const SparseMatrix* a, const DenseMatrix* b, const void* /*beta*/,
                                         const DenseMatrix* c, int /*compute_type*/, int /*algorithm*/,
                                         std::size_t* bytes) {
  const bool described = alive(a) && alive(b) && alive(c);
  return answer(handle, described, bytes, described ? buffers::product(*a) : 0);
}

PLIMSOLL_API int cusparseSDDMM_bufferSize(Handle* handle, int /*op_a*/, int /*op_b*/, const void* /*alpha*/,
                                          const DenseMatrix* a, const DenseMatrix* b, const void* /*beta*/,
                                          const SparseMatrix* c, int /*compute_type*/, int /*algorithm*/,
                                          std::size_t* bytes) {
  const bool described = alive(a) && alive(b) && alive(c);
  return answer(handle, described, bytes, described ? buffers::product(*c) : 0);
}

PLIMSOLL_API int cusparseSpSV_bufferSize(Handle* handle, int /*op*/, const void* /*alpha*/, const SparseMatrix* a,
                                         const DenseVector* x, const DenseVector* y, int /*compute_type*/,
                                         int /*algorithm*/, const Info* info, std::size_t* bytes) {
  const bool described = alive(a) && alive(x) && alive(y) && alive(info);
  return answer(handle, described, bytes, described ? buffers::solve_vector(*a) : 0);
}

PLIMSOLL_API int cusparseSpSM_bufferSize(Handle* handle, int /*op_a*/, int /*op_b*/, const void* /*alpha*/,
                                         const SparseMatrix* a, const DenseMatrix* b, const DenseMatrix* c,
                                         int /*compute_type*/, int /*algorithm*/, const Info* info,
                                         std::size_t* bytes) {
  const bool described = alive(a) && alive(b) && alive(c) && alive(info);
  return answer(handle, described, bytes, described ? buffers::solve_matrix(*a, *b) : 0);
}

PLIMSOLL_API int cusparseSpGEMM_workEstimation(Handle* handle, int /*op_a*/, int /*op_b*/, const void* /*alpha*/,
                                               const SparseMatrix* a, const SparseMatrix* b, const void* /*beta*/,
                                               const SparseMatrix* c, int /*compute_type*/, int /*algorithm*/,
                                               const Info* info, std::size_t* bytes, const void* buffer) {
  const bool described = alive(a) && alive(b) && alive(c) && alive(info);
  const int status = answer(handle, described, bytes, described ? buffers::spgemm_rows(*a) : 0);
  return status == kSuccess && buffer != nullptr ? Handles::enqueue("cusparseSpGEMM_workEstimation", handle) : status;
}

PLIMSOLL_API int cusparseSpGEMM_compute(Handle* handle, int /*op_a*/, int /*op_b*/, const void* /*alpha*/,
                                        const SparseMatrix* a, const SparseMatrix* b, const void* /*beta*/,
                                        const SparseMatrix* c, int /*compute_type*/, int /*algorithm*/,
                                        const Info* info, std::size_t* bytes, const void* buffer) {
  const bool described = alive(a) && alive(b) && alive(c) && alive(info);
  const int status = answer(handle, described, bytes, buffers::spgemm_products());
  if (status != kSuccess || buffer == nullptr) return status;
  int entries = 0;  // Of the product: data that only a GPU has.
  read_back_zero("cusparseSpGEMM_compute", handle, &entries);
  return Handles::enqueue("cusparseSpGEMM_compute", handle);
}
