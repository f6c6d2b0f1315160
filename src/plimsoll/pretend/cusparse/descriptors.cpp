// Descriptors of the generic interface keep their values; torch reads sizes back from them.

#include <cstring>

#include "plimsoll/pretend/cusparse/abi.h"

namespace {

using namespace plimsoll::pretend;
using namespace plimsoll::pretend::cusparse;

int make_compressed(SparseMatrix** out, int format, std::int64_t rows, std::int64_t cols, std::int64_t nnz,
                    void* offsets, void* indices, void* values, int offsets_type, int indices_type, int index_base,
                    int value_type) {
  if (rows < 0 || cols < 0 || nnz < 0) return kInvalidValue;
  return Descriptors::make(
      out,
      SparseMatrix{
          {}, format, rows, cols, nnz, offsets, indices, values, offsets_type, indices_type, index_base, value_type});
}

int* attribute_of(SparseMatrix* matrix, int attribute, const void* data, std::size_t bytes) {
  if (!alive(matrix) || data == nullptr || bytes != sizeof(int)) return nullptr;
  if (attribute == kFillMode) return &matrix->fill_mode;
  return attribute == kDiagonalType ? &matrix->diagonal_type : nullptr;
}

}  // namespace

// The const variants, from CUDA 12 on, differ only in the constness of the arguments.
#define PLIMSOLL_CUSPARSE_COMPRESSED(name, format)                                                                 \
  PLIMSOLL_API int name(SparseMatrix** out, std::int64_t rows, std::int64_t cols, std::int64_t nnz, void* offsets, \
                        void* indices, void* values, int offsets_type, int indices_type, int index_base,           \
                        int value_type) {                                                                          \
    return make_compressed(out, format, rows, cols, nnz, offsets, indices, values, offsets_type, indices_type,     \
                           index_base, value_type);                                                                \
  }
PLIMSOLL_CUSPARSE_COMPRESSED(cusparseCreateCsr, kCsr)
PLIMSOLL_CUSPARSE_COMPRESSED(cusparseCreateCsc, kCsc)
PLIMSOLL_ALIAS(cusparseCreateConstCsr, cusparseCreateCsr);
PLIMSOLL_ALIAS(cusparseCreateConstCsc, cusparseCreateCsc);

PLIMSOLL_API int cusparseCreateCoo(SparseMatrix** out, std::int64_t rows, std::int64_t cols, std::int64_t nnz,
                                   void* row_indices, void* col_indices, void* values, int indices_type, int index_base,
                                   int value_type) {
  return make_compressed(out, kCoo, rows, cols, nnz, row_indices, col_indices, values, indices_type, indices_type,
                         index_base, value_type);
}

PLIMSOLL_ALIAS(cusparseCreateConstCoo, cusparseCreateCoo);

PLIMSOLL_API int cusparseCreateBsr(SparseMatrix** out, std::int64_t rows, std::int64_t cols, std::int64_t nnz,
                                   std::int64_t row_block, std::int64_t col_block, void* offsets, void* indices,
                                   void* values, int offsets_type, int indices_type, int index_base, int value_type,
                                   int /*order*/) {
  const int status = make_compressed(out, kBsr, rows, cols, nnz, offsets, indices, values, offsets_type, indices_type,
                                     index_base, value_type);
  if (status != kSuccess) return status;
  (*out)->row_block = row_block;
  (*out)->col_block = col_block;
  return kSuccess;
}

PLIMSOLL_API int cusparseDestroySpMat(SparseMatrix* matrix) { return Descriptors::destroy_any(matrix); }

PLIMSOLL_API int cusparseCsrSetPointers(SparseMatrix* matrix, void* offsets, void* indices, void* values) {
  if (!alive(matrix)) return kInvalidValue;
  matrix->offsets = offsets;
  matrix->indices = indices;
  matrix->values = values;
  return kSuccess;
}
PLIMSOLL_ALIAS(cusparseCscSetPointers, cusparseCsrSetPointers);
PLIMSOLL_ALIAS(cusparseCooSetPointers, cusparseCsrSetPointers);

// The strides, the arguments after these, describe the caller's memory and are not read.
PLIMSOLL_API int cusparseCsrSetStridedBatch(SparseMatrix* matrix, int batch_count) {
  if (!alive(matrix) || batch_count < 1) return kInvalidValue;
  matrix->batch_count = batch_count;
  return kSuccess;
}
PLIMSOLL_ALIAS(cusparseCooSetStridedBatch, cusparseCsrSetStridedBatch);
PLIMSOLL_ALIAS(cusparseBsrSetStridedBatch, cusparseCsrSetStridedBatch);

/// The number of entries of a SpGEMM product depends on the data. It stays as created: 0 in torch.
PLIMSOLL_API int cusparseSpMatGetSize(const SparseMatrix* matrix, std::int64_t* rows, std::int64_t* cols,
                                      std::int64_t* nnz) {
  if (!alive(matrix)) return kInvalidValue;
  put(rows, matrix->rows);
  put(cols, matrix->cols);
  put(nnz, matrix->nnz);
  return kSuccess;
}

PLIMSOLL_API int cusparseSpMatGetFormat(const SparseMatrix* matrix, int* format) {
  return alive(matrix) ? give(format, matrix->format, kInvalidValue) : kInvalidValue;
}

PLIMSOLL_API int cusparseSpMatGetIndexBase(const SparseMatrix* matrix, int* base) {
  return alive(matrix) ? give(base, matrix->index_base, kInvalidValue) : kInvalidValue;
}

PLIMSOLL_API int cusparseSpMatGetStridedBatch(const SparseMatrix* matrix, int* batch_count) {
  return alive(matrix) ? give(batch_count, matrix->batch_count, kInvalidValue) : kInvalidValue;
}

PLIMSOLL_API int cusparseSpMatSetAttribute(SparseMatrix* matrix, int attribute, const void* data, std::size_t bytes) {
  int* place = attribute_of(matrix, attribute, data, bytes);
  if (place == nullptr) return kInvalidValue;
  std::memcpy(place, data, sizeof *place);
  return kSuccess;
}

PLIMSOLL_API int cusparseSpMatGetAttribute(SparseMatrix* matrix, int attribute, void* data, std::size_t bytes) {
  const int* place = attribute_of(matrix, attribute, data, bytes);
  if (place == nullptr) return kInvalidValue;
  std::memcpy(data, place, sizeof *place);
  return kSuccess;
}

#define PLIMSOLL_CUSPARSE_VALUES(name, Type)                                            \
  PLIMSOLL_API int cusparse##name##GetValues(Type* object, void** values) {             \
    return alive(object) ? give(values, object->values, kInvalidValue) : kInvalidValue; \
  }                                                                                     \
  PLIMSOLL_API int cusparse##name##SetValues(Type* object, void* values) {              \
    if (!alive(object)) return kInvalidValue;                                           \
    object->values = values;                                                            \
    return kSuccess;                                                                    \
  }
PLIMSOLL_CUSPARSE_VALUES(SpMat, SparseMatrix)
PLIMSOLL_CUSPARSE_VALUES(DnMat, DenseMatrix)
PLIMSOLL_CUSPARSE_VALUES(DnVec, DenseVector)

PLIMSOLL_API int cusparseCreateDnMat(DenseMatrix** out, std::int64_t rows, std::int64_t cols,
                                     std::int64_t leading_dimension, void* values, int value_type, int order) {
  if (rows < 0 || cols < 0) return kInvalidValue;
  return Descriptors::make(out, DenseMatrix{{}, rows, cols, leading_dimension, values, value_type, order});
}

PLIMSOLL_ALIAS(cusparseCreateConstDnMat, cusparseCreateDnMat);

PLIMSOLL_API int cusparseDestroyDnMat(DenseMatrix* matrix) { return Descriptors::destroy_any(matrix); }

PLIMSOLL_API int cusparseDnMatGet(const DenseMatrix* matrix, std::int64_t* rows, std::int64_t* cols,
                                  std::int64_t* leading_dimension, void** values, int* value_type, int* order) {
  if (!alive(matrix)) return kInvalidValue;
  put(rows, matrix->rows);
  put(cols, matrix->cols);
  put(leading_dimension, matrix->leading_dimension);
  put(values, matrix->values);
  put(value_type, matrix->value_type);
  put(order, matrix->order);
  return kSuccess;
}

PLIMSOLL_API int cusparseDnMatSetStridedBatch(DenseMatrix* matrix, int batch_count, std::int64_t batch_stride) {
  if (!alive(matrix) || batch_count < 1) return kInvalidValue;
  matrix->batch_count = batch_count;
  matrix->batch_stride = batch_stride;
  return kSuccess;
}

PLIMSOLL_API int cusparseDnMatGetStridedBatch(const DenseMatrix* matrix, int* batch_count, std::int64_t* batch_stride) {
  if (!alive(matrix)) return kInvalidValue;
  put(batch_count, matrix->batch_count);
  put(batch_stride, matrix->batch_stride);
  return kSuccess;
}

PLIMSOLL_API int cusparseCreateDnVec(DenseVector** out, std::int64_t entries, void* values, int value_type) {
  if (entries < 0) return kInvalidValue;
  return Descriptors::make(out, DenseVector{{}, entries, values, value_type});
}

PLIMSOLL_ALIAS(cusparseCreateConstDnVec, cusparseCreateDnVec);

PLIMSOLL_API int cusparseDestroyDnVec(DenseVector* vector) { return Descriptors::destroy_any(vector); }

PLIMSOLL_API int cusparseDnVecGet(const DenseVector* vector, std::int64_t* entries, void** values, int* value_type) {
  if (!alive(vector)) return kInvalidValue;
  put(entries, vector->entries);
  put(values, vector->values);
  put(value_type, vector->value_type);
  return kSuccess;
}
