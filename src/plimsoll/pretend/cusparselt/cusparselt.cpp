#include "plimsoll/pretend/cuda/library_types.h"
#include "plimsoll/pretend/cusparselt/abi.h"
#include "plimsoll/pretend/model/machine.h"

namespace {

using namespace plimsoll;
using namespace plimsoll::pretend;
using namespace plimsoll::pretend::cusparselt;

Bytes dense_bytes(const MatrixDescriptor& matrix) {
  return static_cast<Bytes>(matrix.rows) * static_cast<Bytes>(matrix.cols) * static_cast<Bytes>(matrix.batch_count) *
         bits_of(matrix.value_type) / 8;
}

/// The bytes of a compressed 2:4 sparse matrix: half of the values, and two index bits for each of them. torch relies
/// on it: 9/16 of the dense bytes for 16-bit values; for 8-bit values it allocates 10/16. Of 32-bit values 1 of 2 is
/// kept, with the index bits of two 16-bit values.
Bytes compressed_bytes(const MatrixDescriptor& matrix) {
  return dense_bytes(matrix) * (bits_of(matrix.value_type) <= 8 ? 10 : 9) / 16;
}

/// The scratch memory of a compression: the index bits. An estimate; the real size is not published.
Bytes compression_buffer_bytes(const MatrixDescriptor& matrix) {
  return compressed_bytes(matrix) - dense_bytes(matrix) / 2;
}

/// The workspace of a product: 0, as an algorithm without split-k needs. With split-k the library would need memory for
/// partial results.
Bytes matmul_workspace_bytes() { return 0; }

constexpr Version kVersion = kCuda13 ? Version{0, 8, 1} : Version{0, 7, 1};

int make_matrix(const void* handle, void* out, std::int64_t rows, std::int64_t cols, std::int64_t leading_dimension,
                int value_type, int order, bool structured) {
  if (!initialized(handle)) return kNotInitialized;
  if (out == nullptr || rows < 1 || cols < 1 || bits_of(value_type) == 0) return kInvalidValue;
  MatrixDescriptor matrix;
  matrix.rows = rows;
  matrix.cols = cols;
  matrix.leading_dimension = leading_dimension;
  matrix.value_type = value_type;
  matrix.order = order;
  matrix.structured = structured ? 1 : 0;
  store(out, matrix);
  return kSuccess;
}

int compressed_size(const MatrixDescriptor& matrix, std::size_t* compressed, std::size_t* buffer) {
  if (!matrix.structured || compressed == nullptr || buffer == nullptr) return kInvalidValue;
  *compressed = compressed_bytes(matrix);
  *buffer = compression_buffer_bytes(matrix);
  return kSuccess;
}

int multiply(const char* function, const void* handle, const void* plan, void* const* streams, int stream_count) {
  Plan record;
  if (!initialized(handle)) return kNotInitialized;
  if (!load(plan, &record)) return kInvalidValue;
  enqueue_gemm(function, stream_count > 0 && streams != nullptr ? streams[0] : nullptr, record.gemm);
  return kSuccess;
}

}  // namespace

PLIMSOLL_API int cusparseLtInit(void* handle) {
  if (handle == nullptr) return kInvalidValue;
  if (!machine().device(current_device()).ensure_context(machine().profile())) return kAllocFailed;
  store(handle, Handle{.device = current_device()});
  return kSuccess;
}

PLIMSOLL_API int cusparseLtDestroy(const void* handle) { return destroy<Handle>(handle); }

PLIMSOLL_API int cusparseLtGetVersion(const void* handle, int* version) {
  if (!initialized(handle)) return kNotInitialized;
  return give(version, kVersion.number(), kInvalidValue);
}

PLIMSOLL_API int cusparseLtGetProperty(int property, int* value) {
  return kVersion.part(property, value) ? kSuccess : kInvalidValue;
}

PLIMSOLL_API int cusparseLtDenseDescriptorInit(const void* handle, void* out, std::int64_t rows, std::int64_t cols,
                                               std::int64_t leading_dimension, std::uint32_t /*alignment*/,
                                               int value_type, int order) {
  return make_matrix(handle, out, rows, cols, leading_dimension, value_type, order, false);
}

PLIMSOLL_API int cusparseLtStructuredDescriptorInit(const void* handle, void* out, std::int64_t rows, std::int64_t cols,
                                                    std::int64_t leading_dimension, std::uint32_t /*alignment*/,
                                                    int value_type, int order, int /*sparsity: only 2:4 exists*/) {
  return make_matrix(handle, out, rows, cols, leading_dimension, value_type, order, true);
}

PLIMSOLL_API int cusparseLtMatDescriptorDestroy(const void* matrix) { return destroy<MatrixDescriptor>(matrix); }

PLIMSOLL_API int cusparseLtMatDescSetAttribute(const void* handle, void* matrix, int attribute, const void* data,
                                               std::size_t bytes) {
  MatrixDescriptor record;
  if (!initialized(handle)) return kNotInitialized;
  if (!load(matrix, &record) || data == nullptr) return kInvalidValue;
  if (attribute == 0 && bytes == sizeof record.batch_count) {
    std::memcpy(&record.batch_count, data, bytes);
  } else if (attribute == 1 && bytes == sizeof record.batch_stride) {
    std::memcpy(&record.batch_stride, data, bytes);
  } else {
    return kInvalidValue;
  }
  store(matrix, record);
  return kSuccess;
}

PLIMSOLL_API int cusparseLtSpMMACompressedSize2(const void* handle, const void* matrix, std::size_t* compressed,
                                                std::size_t* buffer) {
  MatrixDescriptor record;
  if (!initialized(handle)) return kNotInitialized;
  return load(matrix, &record) ? compressed_size(record, compressed, buffer) : kInvalidValue;
}

PLIMSOLL_API int cusparseLtSpMMACompressedSize(const void* handle, const void* plan, std::size_t* compressed,
                                               std::size_t* buffer) {
  Plan record;
  if (!initialized(handle)) return kNotInitialized;
  return load(plan, &record) ? compressed_size(record.sparse, compressed, buffer) : kInvalidValue;
}

PLIMSOLL_API int cusparseLtSpMMACompress2(const void* handle, const void* matrix, int /*is_a*/, int /*op*/,
                                          const void* /*dense*/, void* /*compressed*/, void* /*buffer*/, void* stream) {
  MatrixDescriptor record;
  if (!initialized(handle)) return kNotInitialized;
  if (!load(matrix, &record) || !record.structured) return kInvalidValue;
  enqueue_call("cusparseLtSpMMACompress2", stream);
  return kSuccess;
}

PLIMSOLL_API int cusparseLtSpMMACompress(const void* handle, const void* plan, const void* /*dense*/,
                                         void* /*compressed*/, void* /*buffer*/, void* stream) {
  Plan record;
  if (!initialized(handle)) return kNotInitialized;
  if (!load(plan, &record)) return kInvalidValue;
  enqueue_call("cusparseLtSpMMACompress", stream);
  return kSuccess;
}

PLIMSOLL_API int cusparseLtMatmulGetWorkspace(const void* handle, const void* plan, std::size_t* bytes) {
  Plan record;
  if (!initialized(handle)) return kNotInitialized;
  return load(plan, &record) ? give(bytes, matmul_workspace_bytes(), kInvalidValue) : kInvalidValue;
}

PLIMSOLL_API int cusparseLtMatmulPlanDestroy(const void* plan) { return destroy<Plan>(plan); }

PLIMSOLL_API int cusparseLtMatmul(const void* handle, const void* plan, const void* /*alpha*/, const void* /*a*/,
                                  const void* /*b*/, const void* /*beta*/, const void* /*c*/, void* /*d*/,
                                  void* /*workspace*/, void* const* streams, std::int32_t stream_count) {
  return multiply("cusparseLtMatmul", handle, plan, streams, stream_count);
}

/// Searches the algorithms (only one exists) and stores it in the plan's selection.
PLIMSOLL_API int cusparseLtMatmulSearch(const void* handle, void* plan, const void* /*alpha*/, const void* /*a*/,
                                        const void* /*b*/, const void* /*beta*/, const void* /*c*/, void* /*d*/,
                                        void* /*workspace*/, void* const* streams, std::int32_t stream_count) {
  const int status = multiply("cusparseLtMatmulSearch", handle, plan, streams, stream_count);
  Plan record;
  AlgorithmSelection selection;
  if (status == kSuccess && load(plan, &record) && load(record.selection, &selection)) {
    selection.attributes[kAlgorithmId] = 0;
    selection.attributes[kSplitK] = 1;
    store(record.selection, selection);
  }
  return status;
}
