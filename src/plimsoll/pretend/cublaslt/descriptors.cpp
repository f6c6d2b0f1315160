#include "plimsoll/pretend/cublaslt/descriptors.h"

namespace {

using namespace plimsoll::pretend;
using namespace plimsoll::pretend::cublaslt;

/// Creates a descriptor and lets `set_defaults` set its attributes.
template <typename D, typename SetDefaults>
int make(D** out, SetDefaults set_defaults) {
  const int status = Descriptors::make(out);
  if (status == kSuccess) set_defaults((*out)->attributes);
  return status;
}

}  // namespace

PLIMSOLL_API int cublasLtMatrixLayoutCreate(MatrixLayout** out, int type, std::uint64_t rows, std::uint64_t cols,
                                            std::int64_t leading_dimension) {
  return make(out, [&](Attributes& attributes) {
    attributes.set<std::uint32_t>(kLayoutType, static_cast<std::uint32_t>(type));
    attributes.set<std::int32_t>(kLayoutOrder, 0);
    attributes.set<std::uint64_t>(kLayoutRows, rows);
    attributes.set<std::uint64_t>(kLayoutCols, cols);
    attributes.set<std::int64_t>(kLayoutLeadingDimension, leading_dimension);
    attributes.set<std::int32_t>(kLayoutBatchCount, 1);
    attributes.set<std::int64_t>(kLayoutStridedBatchOffset, 0);
    attributes.set<std::int64_t>(kLayoutPlaneOffset, 0);
    attributes.set<std::uint32_t>(kLayoutBatchMode, 0);
  });
}

PLIMSOLL_API int cublasLtMatmulDescCreate(MatmulDescriptor** out, int compute_type, int scale_type) {
  return make(out, [&](Attributes& attributes) {
    attributes.set<std::int32_t>(kMatmulComputeType, compute_type);
    attributes.set<std::int32_t>(kMatmulScaleType, scale_type);
    attributes.set<std::int32_t>(kMatmulPointerMode, 0);
    attributes.set<std::int32_t>(kMatmulTransA, kNoTranspose);
    attributes.set<std::int32_t>(kMatmulTransB, kNoTranspose);
    attributes.set<std::int32_t>(kMatmulTransC, kNoTranspose);
    attributes.set<std::int32_t>(kMatmulFillMode, 2);   // The whole matrix.
    attributes.set<std::uint32_t>(kMatmulEpilogue, 1);  // None.
  });
}

PLIMSOLL_API int cublasLtMatmulPreferenceCreate(Preference** out) {
  return make(out, [](Attributes& attributes) {
    attributes.set<std::uint32_t>(kPreferenceSearchMode, 0);
    attributes.set<std::uint64_t>(kPreferenceMaxWorkspaceBytes, 0);
  });
}

PLIMSOLL_API int cublasLtMatrixTransformDescCreate(TransformDescriptor** out, int scale_type) {
  return make(out, [&](Attributes& attributes) {
    attributes.set<std::int32_t>(kTransformScaleType, scale_type);
    attributes.set<std::int32_t>(kTransformPointerMode, 0);
    attributes.set<std::int32_t>(kTransformTransA, kNoTranspose);
    attributes.set<std::int32_t>(kTransformTransB, kNoTranspose);
  });
}

#define PLIMSOLL_LT_DESCRIPTOR(name, Type)                                                                             \
  PLIMSOLL_API int cublasLt##name##Destroy(Type* descriptor) { return Descriptors::destroy_any(descriptor); }          \
  PLIMSOLL_API int cublasLt##name##SetAttribute(Type* descriptor, int attribute, const void* value,                    \
                                                std::size_t bytes) {                                                   \
    return alive(descriptor) ? descriptor->attributes.set(attribute, value, bytes) : kInvalidValue;                    \
  }                                                                                                                    \
  PLIMSOLL_API int cublasLt##name##GetAttribute(const Type* descriptor, int attribute, void* value, std::size_t bytes, \
                                                std::size_t* written) {                                                \
    return alive(descriptor) ? descriptor->attributes.get(attribute, value, bytes, written) : kInvalidValue;           \
  }
PLIMSOLL_LT_DESCRIPTOR(MatrixLayout, MatrixLayout)
PLIMSOLL_LT_DESCRIPTOR(MatmulDesc, MatmulDescriptor)
PLIMSOLL_LT_DESCRIPTOR(MatmulPreference, Preference)
PLIMSOLL_LT_DESCRIPTOR(MatrixTransformDesc, TransformDescriptor)
