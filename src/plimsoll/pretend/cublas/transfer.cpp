// cublasSetVector, cublasGetMatrix and so on: strided copies between the host and the device.

#include "plimsoll/pretend/cublas/abi.h"
#include "plimsoll/pretend/model/machine.h"

namespace {

using namespace plimsoll;
using namespace plimsoll::pretend;
using namespace plimsoll::pretend::cublas;

/// `columns` pieces of `bytes` each, `pitch` bytes apart at the destination.
struct Pieces {
  Bytes bytes = 0;
  Bytes pitch = 0;
  int columns = 0;
};

int upload(const char* function, const Pieces& pieces, const void* source, void* destination, void* stream_handle) {
  if (pieces.columns == 0 || pieces.bytes == 0) return kSuccess;
  if (source == nullptr || destination == nullptr) return kInvalidValue;
  Stream* stream = stream_of(stream_handle);
  if (stream == nullptr) return kInvalidValue;
  machine().enqueue(*stream, {.kind = Happening::kCopy,
                              .name = function,
                              .bytes = pieces.bytes * static_cast<Bytes>(pieces.columns),
                              .source = source,
                              .destination = destination});
  return kSuccess;
}

int download(const char* function, const Pieces& pieces, const void* source, void* destination, void* stream_handle) {
  if (pieces.columns == 0 || pieces.bytes == 0) return kSuccess;
  if (source == nullptr || destination == nullptr || stream_of(stream_handle) == nullptr) return kInvalidValue;
  if (!is_host(destination)) return kMappingError;
  enqueue_read_back(function, source, {destination, pieces.pitch, pieces.bytes, static_cast<Bytes>(pieces.columns)},
                    stream_handle);
  return kSuccess;
}

bool make_matrix(int rows, int cols, int element, int leading_dimension, Pieces* pieces) {
  if (rows < 0 || cols < 0 || element <= 0 || leading_dimension < rows) return false;
  *pieces = {.bytes = static_cast<Bytes>(rows) * static_cast<Bytes>(element),
             .pitch = static_cast<Bytes>(leading_dimension) * static_cast<Bytes>(element),
             .columns = cols};
  return true;
}

/// A vector of stride `increment` is a matrix of one row.
bool make_vector(int n, int element, int increment, Pieces* pieces) {
  return n >= 0 && increment > 0 && make_matrix(1, n, element, increment, pieces);
}

}  // namespace

PLIMSOLL_API int cublasSetVectorAsync(int n, int element, const void* x, int incx, void* y, int incy, void* stream) {
  Pieces pieces;
  if (incx <= 0 || !make_vector(n, element, incy, &pieces)) return kInvalidValue;
  return upload("cublasSetVectorAsync", pieces, x, y, stream);
}

PLIMSOLL_API int cublasGetVectorAsync(int n, int element, const void* x, int incx, void* y, int incy, void* stream) {
  Pieces pieces;
  if (incx <= 0 || !make_vector(n, element, incy, &pieces)) return kInvalidValue;
  return download("cublasGetVectorAsync", pieces, x, y, stream);
}

PLIMSOLL_API int cublasSetMatrixAsync(int rows, int cols, int element, const void* a, int lda, void* b, int ldb,
                                      void* stream) {
  Pieces pieces;
  if (lda < rows || !make_matrix(rows, cols, element, ldb, &pieces)) return kInvalidValue;
  return upload("cublasSetMatrixAsync", pieces, a, b, stream);
}

PLIMSOLL_API int cublasGetMatrixAsync(int rows, int cols, int element, const void* a, int lda, void* b, int ldb,
                                      void* stream) {
  Pieces pieces;
  if (lda < rows || !make_matrix(rows, cols, element, ldb, &pieces)) return kInvalidValue;
  return download("cublasGetMatrixAsync", pieces, a, b, stream);
}

PLIMSOLL_API int cublasSetVector(int n, int element, const void* x, int incx, void* y, int incy) {
  return cublasSetVectorAsync(n, element, x, incx, y, incy, nullptr);
}

PLIMSOLL_API int cublasGetVector(int n, int element, const void* x, int incx, void* y, int incy) {
  return cublasGetVectorAsync(n, element, x, incx, y, incy, nullptr);
}

PLIMSOLL_API int cublasSetMatrix(int rows, int cols, int element, const void* a, int lda, void* b, int ldb) {
  return cublasSetMatrixAsync(rows, cols, element, a, lda, b, ldb, nullptr);
}

PLIMSOLL_API int cublasGetMatrix(int rows, int cols, int element, const void* a, int lda, void* b, int ldb) {
  return cublasGetMatrixAsync(rows, cols, element, a, lda, b, ldb, nullptr);
}
