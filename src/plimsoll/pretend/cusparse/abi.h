#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

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

/// A kind of handle or descriptor, with its own mark, so that kinds cannot be confused.
template <std::uint32_t kMark>
struct Marked {
  static constexpr std::uint32_t kAlive = kMark;

  std::uint32_t magic = kAlive;
};

template <std::uint32_t kMark>
bool alive(const Marked<kMark>* object) {
  return object != nullptr && object->magic == kMark;
}

/// cusparseHandle_t.
struct Handle : Marked<0x53504831U> {
  std::atomic<void*> stream{nullptr};
  std::atomic<int> pointer_mode{kHostPointers};
};

/// cusparseMatDescr_t: the properties of a matrix in the older interface.
struct MatrixProperties : Marked<0x53504d31U> {
  int type = 0;
  int fill_mode = 0;
  int diagonal_type = 0;
  int index_base = 0;
};

/// cusparseSpMatDescr_t. Sizes are in elements; for block formats in blocks, as given.
struct SparseMatrix : Marked<0x53505331U> {
  int format = kCsr;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t nnz = 0;
  std::int64_t row_block = 1;
  std::int64_t col_block = 1;
  void* offsets = nullptr;  ///< Row indices of a COO matrix.
  void* indices = nullptr;
  void* values = nullptr;
  int offsets_type = 0;
  int indices_type = 0;
  int index_base = 0;
  int value_type = 0;
  int batch_count = 1;
  int fill_mode = 0;
  int diagonal_type = 0;
};

/// cusparseDnMatDescr_t.
struct DenseMatrix : Marked<0x53504431U> {
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
struct DenseVector : Marked<0x53505631U> {
  std::int64_t entries = 0;
  void* values = nullptr;
  int value_type = 0;
};

/// The result of an analysis for later calls; always empty.
struct Info : Marked<0x53504931U> {};

/// Reports work on the handle's stream.
int enqueue(const char* function, const Handle* handle);

/// Gives the host an integer that depends on the data: a read-back of zero. Ignores a device pointer.
void read_back_zero(const char* function, const Handle* handle, int* destination);

}  // namespace plimsoll::pretend::cusparse
