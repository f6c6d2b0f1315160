// The part of the older interface that torch still uses: block matrices (BSR), sums of CSR matrices, sorting,
// conversion.

#include <algorithm>
#include <limits>

#include "plimsoll/pretend/cusparse/abi.h"
#include "plimsoll/pretend/cusparse/buffer_sizes.h"

namespace {

using namespace plimsoll;
using namespace plimsoll::pretend;
using namespace plimsoll::pretend::cusparse;

template <typename Size>
int answer(const Handle* handle, const void* properties_or_info, Size* out, Bytes bytes) {
  if (!alive(handle)) return kNotInitialized;
  if (properties_or_info == nullptr || out == nullptr) return kInvalidValue;
  *out = static_cast<Size>(std::min<Bytes>(bytes, std::numeric_limits<Size>::max()));
  return kSuccess;
}

}  // namespace

PLIMSOLL_API int cusparseCreateMatDescr(MatrixProperties** out) { return Descriptors::make(out); }
PLIMSOLL_API int cusparseDestroyMatDescr(MatrixProperties* properties) { return Descriptors::destroy_any(properties); }

// The getters return the value itself: the interface cannot report an error.
#define PLIMSOLL_CUSPARSE_PROPERTY(name, member, last)                             \
  PLIMSOLL_API int cusparseSetMat##name(MatrixProperties* properties, int value) { \
    if (!alive(properties) || value < 0 || value > (last)) return kInvalidValue;   \
    properties->member = value;                                                    \
    return kSuccess;                                                               \
  }                                                                                \
  PLIMSOLL_API int cusparseGetMat##name(const MatrixProperties* properties) {      \
    return alive(properties) ? properties->member : 0;                             \
  }
PLIMSOLL_CUSPARSE_PROPERTY(Type, type, 3)
PLIMSOLL_CUSPARSE_PROPERTY(FillMode, fill_mode, 1)
PLIMSOLL_CUSPARSE_PROPERTY(DiagType, diagonal_type, 1)
PLIMSOLL_CUSPARSE_PROPERTY(IndexBase, index_base, 1)

PLIMSOLL_CUSPARSE_CALL(cusparseCreateIdentityPermutation)
PLIMSOLL_CUSPARSE_CALL(cusparseXcoo2csr)
PLIMSOLL_CUSPARSE_CALL(cusparseXcsr2coo)
PLIMSOLL_CUSPARSE_CALL(cusparseXcoosortByRow)
PLIMSOLL_CUSPARSE_CALL(cusparseXcoosortByColumn)
PLIMSOLL_CUSPARSE_CALL(cusparseXcsrsort)

PLIMSOLL_API int cusparseXcoosort_bufferSizeExt(Handle* handle, int rows, int /*cols*/, int nnz,
                                                const int* /*rows_or_offsets*/, const int* /*cols_or_indices*/,
                                                std::size_t* bytes) {
  return answer(handle, handle, bytes, buffers::sort(rows, nnz));
}
PLIMSOLL_ALIAS(cusparseXcsrsort_bufferSizeExt, cusparseXcoosort_bufferSizeExt);

/// The position of the first zero on the diagonal: -1, no zero. A matrix of zeros would have one, but then every solve
/// would fail.
PLIMSOLL_API int cusparseXbsrsv2_zeroPivot(Handle* handle, const Info* info, int* position) {
  if (!alive(handle)) return kNotInitialized;
  if (!alive(info) || position == nullptr) return kInvalidValue;
  if (is_host(position)) *position = -1;
  return kSuccess;
}
PLIMSOLL_ALIAS(cusparseXbsrsm2_zeroPivot, cusparseXbsrsv2_zeroPivot);

/// The number of entries of a sum depends on the data: a read-back, if the host requests it.
PLIMSOLL_API int cusparseXcsrgeam2Nnz(Handle* handle, int rows, int cols, const MatrixProperties* /*a*/, int /*nnz_a*/,
                                      const int* /*offsets_a*/, const int* /*indices_a*/, const MatrixProperties* /*b*/,
                                      int /*nnz_b*/, const int* /*offsets_b*/, const int* /*indices_b*/,
                                      const MatrixProperties* /*c*/, int* /*offsets_c*/, int* entries,
                                      void* /*workspace*/) {
  if (!alive(handle)) return kNotInitialized;
  if (rows < 0 || cols < 0 || entries == nullptr) return kInvalidValue;
  read_back_zero("cusparseXcsrgeam2Nnz", handle, entries);
  return Handles::enqueue("cusparseXcsrgeam2Nnz", handle);
}

#define PLIMSOLL_CUSPARSE_TYPED(T, element)                                                                        \
  PLIMSOLL_CUSPARSE_CALL(cusparse##T##bsrmv)                                                                       \
  PLIMSOLL_CUSPARSE_CALL(cusparse##T##bsrmm)                                                                       \
  PLIMSOLL_CUSPARSE_CALL(cusparse##T##bsrsv2_analysis)                                                             \
  PLIMSOLL_CUSPARSE_CALL(cusparse##T##bsrsv2_solve)                                                                \
  PLIMSOLL_CUSPARSE_CALL(cusparse##T##bsrsm2_analysis)                                                             \
  PLIMSOLL_CUSPARSE_CALL(cusparse##T##bsrsm2_solve)                                                                \
  PLIMSOLL_CUSPARSE_CALL(cusparse##T##csrgeam2)                                                                    \
  PLIMSOLL_API int cusparse##T##bsrsv2_bufferSize(                                                                 \
      Handle* handle, int /*direction*/, int /*op*/, int rows, int /*nnz*/, const MatrixProperties* /*a*/,         \
      void* /*values*/, const int* /*offsets*/, const int* /*indices*/, int block, const Info* info, int* bytes) { \
    return answer(handle, info, bytes, buffers::block_solve(rows, block, 1, element));                             \
  }                                                                                                                \
  PLIMSOLL_API int cusparse##T##bsrsm2_bufferSize(                                                                 \
      Handle* handle, int /*direction*/, int /*op_a*/, int /*op_b*/, int rows, int right_sides, int /*nnz*/,       \
      const MatrixProperties* /*a*/, void* /*values*/, const int* /*offsets*/, const int* /*indices*/, int block,  \
      const Info* info, int* bytes) {                                                                              \
    return answer(handle, info, bytes, buffers::block_solve(rows, block, right_sides, element));                   \
  }                                                                                                                \
  PLIMSOLL_API int cusparse##T##csrgeam2_bufferSizeExt(                                                            \
      Handle* handle, int rows, int /*cols*/, const void* /*alpha*/, const MatrixProperties* /*a*/, int /*nnz_a*/, \
      const void* /*values_a*/, const int* /*offsets_a*/, const int* /*indices_a*/, const void* /*beta*/,          \
      const MatrixProperties* /*b*/, int /*nnz_b*/, const void* /*values_b*/, const int* /*offsets_b*/,            \
      const int* /*indices_b*/, const MatrixProperties* c, const void* /*values_c*/, const int* /*offsets_c*/,     \
      const int* /*indices_c*/, std::size_t* bytes) {                                                              \
    return answer(handle, c, bytes, buffers::add(rows));                                                           \
  }
PLIMSOLL_CUSPARSE_TYPED(S, 4)
PLIMSOLL_CUSPARSE_TYPED(D, 8)
PLIMSOLL_CUSPARSE_TYPED(C, 8)
PLIMSOLL_CUSPARSE_TYPED(Z, 16)
