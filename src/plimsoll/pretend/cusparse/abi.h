#pragma once

#include <atomic>
#include <cstdint>

#include "plimsoll/pretend/model/object.h"

namespace plimsoll::pretend::cusparse {

enum Status : int {
  kSuccess = 0,
  kNotInitialized = 1,
  kAllocFailed = 2,
  kInvalidValue = 3,
  kArchMismatch = 4,
  kMappingError = 5,
  kExecutionFailed = 6,
  kInternalError = 7,
  kMatrixTypeNotSupported = 8,
  kZeroPivot = 9,
  kNotSupported = 10,
  kInsufficientResources = 11,
};

enum Format : int { kCsr = 1, kCsc = 2, kCoo = 3, kBsr = 6 };
enum PointerMode : int { kHostPointers = 0, kDevicePointers = 1 };
enum MatrixAttribute : int { kFillMode = 0, kDiagonalType = 1 };

using Handles = Objects<kNotInitialized, kInvalidValue, kAllocFailed>;
using Descriptors = Objects<kInvalidValue, kInvalidValue, kAllocFailed>;

/// cusparseHandle_t.
struct Handle : Object<0x53504831U> {
  std::atomic<void*> stream{nullptr};
  std::atomic<int> pointer_mode{kHostPointers};
};

/// cusparseMatDescr_t: the properties of a matrix in the older interface.
struct MatrixProperties : Object<0x53504d31U> {
  int type = 0;
  int fill_mode = 0;
  int diagonal_type = 0;
  int index_base = 0;
};

/// cusparseSpMatDescr_t. Sizes are in elements; for block formats in blocks, as given.
struct SparseMatrix : Object<0x53505331U> {
  int format = kCsr;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t nnz = 0;
  void* offsets = nullptr;  ///< Row indices of a COO matrix.
  void* indices = nullptr;
  void* values = nullptr;
  int offsets_type = 0;
  int indices_type = 0;
  int index_base = 0;
  int value_type = 0;
  std::int64_t row_block = 1;
  std::int64_t col_block = 1;
  int batch_count = 1;
  int fill_mode = 0;
  int diagonal_type = 0;
};

/// cusparseDnMatDescr_t.
struct DenseMatrix : Object<0x53504431U> {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t leading_dimension = 0;
  void* values = nullptr;
  int value_type = 0;
  int order = 0;
  int batch_count = 1;
  std::int64_t batch_stride = 0;
};

/// cusparseDnVecDescr_t.
struct DenseVector : Object<0x53505631U> {
  std::int64_t entries = 0;
  void* values = nullptr;
  int value_type = 0;
};

/// The result of an analysis for later calls; always empty.
struct Info : Object<0x53504931U> {};

/// Gives the host an integer that depends on the data: a read-back of zero. Ignores a device pointer.
void read_back_zero(const char* function, const Handle* handle, int* destination);

}  // namespace plimsoll::pretend::cusparse

/// Defines an entry point that only puts work on its handle's stream.
#define PLIMSOLL_CUSPARSE_CALL(name)                                       \
  PLIMSOLL_API int name(::plimsoll::pretend::cusparse::Handle* handle) {   \
    return ::plimsoll::pretend::cusparse::Handles::enqueue(#name, handle); \
  }
