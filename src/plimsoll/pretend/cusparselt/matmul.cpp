// The parts of a product: descriptor, choice of an algorithm, plan.

#include "plimsoll/pretend/cusparselt/abi.h"

using namespace plimsoll::pretend;
using namespace plimsoll::pretend::cusparselt;

PLIMSOLL_API int cusparseLtMatmulDescriptorInit(const void* handle, void* out, int op_a, int /*op_b*/, const void* a,
                                                const void* b, const void* c, const void* d, int /*compute_type*/) {
  if (!initialized(handle)) return kNotInitialized;
  MatrixDescriptor a_matrix, b_matrix, c_matrix, d_matrix;
  const bool described = load(a, &a_matrix) && load(b, &b_matrix) && load(c, &c_matrix) && load(d, &d_matrix);
  if (out == nullptr || !described || a_matrix.structured == b_matrix.structured) return kInvalidValue;
  MatmulDescriptor matmul;
  matmul.gemm = {.m = d_matrix.rows,
                 .n = d_matrix.cols,
                 .k = op_a == 0 ? a_matrix.cols : a_matrix.rows,
                 .batch = d_matrix.batch_count};
  matmul.sparse = a_matrix.structured ? a_matrix : b_matrix;
  store(out, matmul);
  return kSuccess;
}

PLIMSOLL_API int cusparseLtMatmulDescSetAttribute(const void* handle, void* matmul, int attribute, const void* data,
                                                  std::size_t bytes) {
  MatmulDescriptor record;
  if (!initialized(handle)) return kNotInitialized;
  if (!load(matmul, &record) || data == nullptr || bytes == 0 || bytes > sizeof(std::uint64_t)) return kInvalidValue;
  if (attribute < 0 || attribute >= MatmulDescriptor::kAttributes) return kInvalidValue;
  std::memcpy(&record.attributes[attribute], data, bytes);
  record.attribute_bytes[attribute] = static_cast<std::uint8_t>(bytes);
  store(matmul, record);
  return kSuccess;
}

PLIMSOLL_API int cusparseLtMatmulDescGetAttribute(const void* handle, const void* matmul, int attribute, void* data,
                                                  std::size_t bytes) {
  MatmulDescriptor record;
  if (!initialized(handle)) return kNotInitialized;
  if (!load(matmul, &record) || data == nullptr) return kInvalidValue;
  if (attribute < 0 || attribute >= MatmulDescriptor::kAttributes) return kInvalidValue;
  const std::size_t kept = record.attribute_bytes[attribute];
  if (bytes > sizeof(std::uint64_t) || (kept != 0 && kept != bytes)) return kInvalidValue;
  std::memcpy(data, &record.attributes[attribute], bytes);
  return kSuccess;
}

PLIMSOLL_API int cusparseLtMatmulAlgSelectionInit(const void* handle, void* out, const void* matmul, int /*default*/) {
  MatmulDescriptor record;
  if (!initialized(handle)) return kNotInitialized;
  if (out == nullptr || !load(matmul, &record)) return kInvalidValue;
  AlgorithmSelection selection;
  selection.attributes[kAlgorithmMaxId] = 1;
  selection.attributes[kSearchIterations] = 5;
  selection.attributes[kSplitK] = 1;
  store(out, selection);
  return kSuccess;
}

PLIMSOLL_API int cusparseLtMatmulAlgSelectionDestroy(const void* selection) {
  return destroy<AlgorithmSelection>(selection);
}

/// Accepts any algorithm number: torch's tuned ones come from a real card, which has more than one.
PLIMSOLL_API int cusparseLtMatmulAlgSetAttribute(const void* handle, void* selection, int attribute, const void* data,
                                                 std::size_t bytes) {
  AlgorithmSelection record;
  if (!initialized(handle)) return kNotInitialized;
  if (!load(selection, &record) || data == nullptr || bytes != sizeof(int)) return kInvalidValue;
  if (attribute < 0 || attribute >= AlgorithmSelection::kAttributes) return kInvalidValue;
  if (attribute == kAlgorithmMaxId) return kInvalidValue;  // Read-only.
  std::memcpy(&record.attributes[attribute], data, bytes);
  store(selection, record);
  return kSuccess;
}

PLIMSOLL_API int cusparseLtMatmulAlgGetAttribute(const void* handle, const void* selection, int attribute, void* data,
                                                 std::size_t bytes) {
  AlgorithmSelection record;
  if (!initialized(handle)) return kNotInitialized;
  if (!load(selection, &record) || data == nullptr || bytes != sizeof(int)) return kInvalidValue;
  if (attribute < 0 || attribute >= AlgorithmSelection::kAttributes) return kInvalidValue;
  std::memcpy(data, &record.attributes[attribute], bytes);
  return kSuccess;
}

PLIMSOLL_API int cusparseLtMatmulPlanInit(const void* handle, void* out, const void* matmul, const void* selection) {
  MatmulDescriptor record;
  AlgorithmSelection chosen;
  if (!initialized(handle)) return kNotInitialized;
  if (out == nullptr || !load(matmul, &record) || !load(selection, &chosen)) return kInvalidValue;
  Plan plan;
  plan.gemm = record.gemm;
  plan.sparse = record.sparse;
  plan.selection = const_cast<void*>(selection);
  store(out, plan);
  return kSuccess;
}
