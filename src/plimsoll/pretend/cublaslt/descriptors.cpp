#include "plimsoll/pretend/cublaslt/descriptors.h"

#include <new>

#include "plimsoll/pretend/model/library_call.h"

namespace {

using namespace plimsoll::pretend::cublaslt;

template <typename D>
D* make(D** out) {
  if (out == nullptr) return nullptr;
  *out = new (std::nothrow) D;
  return *out;
}

template <typename D>
int destroy(D* descriptor) {
  if (descriptor == nullptr) return kSuccess;
  if (!alive(descriptor)) return kInvalidValue;
  descriptor->magic = 0;
  delete descriptor;
  return kSuccess;
}

template <typename D>
int set(D* descriptor, int attribute, const void* value, std::size_t bytes) {
  return alive(descriptor) ? descriptor->attributes.set(attribute, value, bytes) : kInvalidValue;
}

template <typename D>
int get(const D* descriptor, int attribute, void* value, std::size_t bytes, std::size_t* written) {
  return alive(descriptor) ? descriptor->attributes.get(attribute, value, bytes, written) : kInvalidValue;
}

}  // namespace

PLIMSOLL_API int cublasLtMatrixLayoutCreate(MatrixLayout** out, int type, std::uint64_t rows, std::uint64_t cols,
                                            std::int64_t leading_dimension) {
  MatrixLayout* layout = make(out);
  if (layout == nullptr) return out == nullptr ? kInvalidValue : kAllocFailed;
  Attributes& attributes = layout->attributes;
  attributes.set<std::uint32_t>(kLayoutType, static_cast<std::uint32_t>(type));
  attributes.set<std::int32_t>(kLayoutOrder, 0);
  attributes.set<std::uint64_t>(kLayoutRows, rows);
  attributes.set<std::uint64_t>(kLayoutCols, cols);
  attributes.set<std::int64_t>(kLayoutLeadingDimension, leading_dimension);
  attributes.set<std::int32_t>(kLayoutBatchCount, 1);
  attributes.set<std::int64_t>(kLayoutStridedBatchOffset, 0);
  attributes.set<std::int64_t>(kLayoutPlaneOffset, 0);
  attributes.set<std::uint32_t>(kLayoutBatchMode, 0);
  return kSuccess;
}

PLIMSOLL_API int cublasLtMatmulDescCreate(MatmulDescriptor** out, int compute_type, int scale_type) {
  MatmulDescriptor* descriptor = make(out);
  if (descriptor == nullptr) return out == nullptr ? kInvalidValue : kAllocFailed;
  Attributes& attributes = descriptor->attributes;
  attributes.set<std::int32_t>(kMatmulComputeType, compute_type);
  attributes.set<std::int32_t>(kMatmulScaleType, scale_type);
  attributes.set<std::int32_t>(kMatmulPointerMode, 0);
  attributes.set<std::int32_t>(kMatmulTransA, kNoTranspose);
  attributes.set<std::int32_t>(kMatmulTransB, kNoTranspose);
  attributes.set<std::int32_t>(kMatmulTransC, kNoTranspose);
  attributes.set<std::int32_t>(kMatmulFillMode, 2);   // The whole matrix.
  attributes.set<std::uint32_t>(kMatmulEpilogue, 1);  // None.
  return kSuccess;
}

PLIMSOLL_API int cublasLtMatmulPreferenceCreate(Preference** out) {
  Preference* preference = make(out);
  if (preference == nullptr) return out == nullptr ? kInvalidValue : kAllocFailed;
  preference->attributes.set<std::uint32_t>(kPreferenceSearchMode, 0);
  preference->attributes.set<std::uint64_t>(kPreferenceMaxWorkspaceBytes, 0);
  return kSuccess;
}

PLIMSOLL_API int cublasLtMatrixTransformDescCreate(TransformDescriptor** out, int scale_type) {
  TransformDescriptor* descriptor = make(out);
  if (descriptor == nullptr) return out == nullptr ? kInvalidValue : kAllocFailed;
  Attributes& attributes = descriptor->attributes;
  attributes.set<std::int32_t>(kTransformScaleType, scale_type);
  attributes.set<std::int32_t>(kTransformPointerMode, 0);
  attributes.set<std::int32_t>(kTransformTransA, kNoTranspose);
  attributes.set<std::int32_t>(kTransformTransB, kNoTranspose);
  return kSuccess;
}

#define PLIMSOLL_LT_DESCRIPTOR(name, Type)                                                                             \
  PLIMSOLL_API int cublasLt##name##Destroy(Type* descriptor) { return destroy(descriptor); }                           \
  PLIMSOLL_API int cublasLt##name##SetAttribute(Type* descriptor, int attribute, const void* value,                    \
                                                std::size_t bytes) {                                                   \
    return set(descriptor, attribute, value, bytes);                                                                   \
  }                                                                                                                    \
  PLIMSOLL_API int cublasLt##name##GetAttribute(const Type* descriptor, int attribute, void* value, std::size_t bytes, \
                                                std::size_t* written) {                                                \
    return get(descriptor, attribute, value, bytes, written);                                                          \
  }
PLIMSOLL_LT_DESCRIPTOR(MatrixLayout, MatrixLayout)
PLIMSOLL_LT_DESCRIPTOR(MatmulDesc, MatmulDescriptor)
PLIMSOLL_LT_DESCRIPTOR(MatmulPreference, Preference)
PLIMSOLL_LT_DESCRIPTOR(MatrixTransformDesc, TransformDescriptor)
#undef PLIMSOLL_LT_DESCRIPTOR
