#include "plimsoll/pretend/cudnn/tensor_descriptor.h"

#include <algorithm>

namespace plimsoll::pretend::cudnn {

bool copy_dimensions(Dimensions& out, int rank, const int* from) {
  if (rank < 1 || rank > kMaxDimensions || from == nullptr) return false;
  if (std::any_of(from, from + rank, [](int n) { return n <= 0; })) return false;
  std::copy_n(from, rank, out.begin());
  return true;
}

void TensorDescriptor::set_packed(int type, std::span<const int> sizes) {
  data_type = type;
  rank = static_cast<int>(sizes.size());
  int stride = 1;
  for (std::size_t i = sizes.size(); i-- > 0;) {
    dimensions[i] = sizes[i];
    strides[i] = stride;
    stride *= sizes[i];
  }
}

std::int64_t TensorDescriptor::elements() const {
  std::int64_t product = rank == 0 ? 0 : 1;
  for (int i = 0; i < rank; ++i) product *= dimensions[static_cast<std::size_t>(i)];
  return product;
}

Bytes TensorDescriptor::bytes() const {
  if (rank == 0) return 0;
  Bytes last = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(rank); ++i) {
    last += static_cast<Bytes>(dimensions[i] - 1) * static_cast<Bytes>(std::max(strides[i], 0));
  }
  return (last + 1) * bytes_of(data_type);
}

}  // namespace plimsoll::pretend::cudnn

using namespace plimsoll::pretend;
using namespace plimsoll::pretend::cudnn;

PLIMSOLL_CUDNN_DESCRIPTOR(Tensor, TensorDescriptor)

PLIMSOLL_API int cudnnSetTensorNdDescriptor(TensorDescriptor* tensor, int data_type, int rank, const int* dimensions,
                                            const int* strides) {
  if (!alive(tensor) || strides == nullptr) return kBadParam;
  if (rank > kMaxDimensions) return kNotSupported;
  if (bytes_of(data_type) == 0 || !copy_dimensions(tensor->dimensions, rank, dimensions)) return kBadParam;
  std::copy_n(strides, rank, tensor->strides.begin());
  tensor->data_type = data_type;
  tensor->rank = rank;
  return kSuccess;
}

PLIMSOLL_API int cudnnGetTensorNdDescriptor(const TensorDescriptor* tensor, int requested, int* data_type, int* rank,
                                            int* dimensions, int* strides) {
  if (!alive(tensor) || requested < 0) return kBadParam;
  put(data_type, tensor->data_type);
  put(rank, tensor->rank);
  const int n = std::min(requested, tensor->rank);
  if (dimensions != nullptr) std::copy_n(tensor->dimensions.begin(), n, dimensions);
  if (strides != nullptr) std::copy_n(tensor->strides.begin(), n, strides);
  return kSuccess;
}

PLIMSOLL_API int cudnnSetTensor4dDescriptorEx(TensorDescriptor* tensor, int data_type, int n, int c, int h, int w,
                                              int n_stride, int c_stride, int h_stride, int w_stride) {
  const int dimensions[] = {n, c, h, w};
  const int strides[] = {n_stride, c_stride, h_stride, w_stride};
  return cudnnSetTensorNdDescriptor(tensor, data_type, 4, dimensions, strides);
}

PLIMSOLL_API int cudnnSetTensor4dDescriptor(TensorDescriptor* tensor, int format, int data_type, int n, int c, int h,
                                            int w) {
  constexpr int kNchw = 0, kNhwc = 1;
  if (format == kNchw) return cudnnSetTensor4dDescriptorEx(tensor, data_type, n, c, h, w, c * h * w, h * w, w, 1);
  if (format == kNhwc) return cudnnSetTensor4dDescriptorEx(tensor, data_type, n, c, h, w, c * h * w, 1, w * c, c);
  return kNotSupported;
}

PLIMSOLL_API int cudnnGetTensorSizeInBytes(const TensorDescriptor* tensor, std::size_t* bytes) {
  return alive(tensor) ? give(bytes, tensor->bytes(), kBadParam) : kBadParam;
}

PLIMSOLL_CUDNN_DESCRIPTOR(Filter, FilterDescriptor)

PLIMSOLL_API int cudnnSetFilterNdDescriptor(FilterDescriptor* filter, int data_type, int format, int rank,
                                            const int* dimensions) {
  if (!alive(filter)) return kBadParam;
  if (rank > kMaxDimensions) return kNotSupported;
  if (bytes_of(data_type) == 0 || !copy_dimensions(filter->dimensions, rank, dimensions)) return kBadParam;
  filter->data_type = data_type;
  filter->format = format;
  filter->rank = rank;
  return kSuccess;
}

PLIMSOLL_API int cudnnGetFilterNdDescriptor(const FilterDescriptor* filter, int requested, int* data_type, int* format,
                                            int* rank, int* dimensions) {
  if (!alive(filter) || requested < 0) return kBadParam;
  put(data_type, filter->data_type);
  put(format, filter->format);
  put(rank, filter->rank);
  if (dimensions != nullptr) std::copy_n(filter->dimensions.begin(), std::min(requested, filter->rank), dimensions);
  return kSuccess;
}
