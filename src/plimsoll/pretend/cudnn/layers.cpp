// Layers with descriptors that only keep the caller's settings.

#include "plimsoll/pretend/cudnn/handle.h"
#include "plimsoll/pretend/cudnn/tensor_descriptor.h"

namespace plimsoll::pretend::cudnn {

/// cudnnActivationDescriptor_t.
struct ActivationDescriptor : Object<0x43444e41> {
  int mode = 0;
  int nan_propagation = 0;
  double coefficient = 0;
};

/// cudnnPoolingDescriptor_t, two-dimensional: the only kind that torch uses.
struct PoolingDescriptor : Object<0x43444e50> {
  int mode = 0;
  int nan_propagation = 0;
  int window[2] = {0, 0};
  int padding[2] = {0, 0};
  int strides[2] = {0, 0};
};

/// cudnnSpatialTransformerDescriptor_t: torch's affine_grid and grid_sample.
struct SpatialTransformerDescriptor : Object<0x43444e53> {
  int sampler = 0;
  int data_type = kFloat;
  int rank = 0;
  Dimensions dimensions{};
};

}  // namespace plimsoll::pretend::cudnn

using namespace plimsoll::pretend;
using namespace plimsoll::pretend::cudnn;

PLIMSOLL_CUDNN_DESCRIPTOR(Activation, ActivationDescriptor)

PLIMSOLL_API int cudnnSetActivationDescriptor(ActivationDescriptor* activation, int mode, int nan_propagation,
                                              double coefficient) {
  if (!alive(activation)) return kBadParam;
  *activation = {{}, mode, nan_propagation, coefficient};
  return kSuccess;
}

PLIMSOLL_API int cudnnGetActivationDescriptor(const ActivationDescriptor* activation, int* mode, int* nan_propagation,
                                              double* coefficient) {
  if (!alive(activation)) return kBadParam;
  put(mode, activation->mode);
  put(nan_propagation, activation->nan_propagation);
  put(coefficient, activation->coefficient);
  return kSuccess;
}

PLIMSOLL_CUDNN_DESCRIPTOR(Pooling, PoolingDescriptor)

PLIMSOLL_API int cudnnSetPooling2dDescriptor(PoolingDescriptor* pooling, int mode, int nan_propagation, int window_h,
                                             int window_w, int padding_h, int padding_w, int stride_h, int stride_w) {
  if (!alive(pooling) || window_h <= 0 || window_w <= 0 || stride_h <= 0 || stride_w <= 0) return kBadParam;
  if (padding_h < 0 || padding_w < 0) return kBadParam;
  *pooling = {{}, mode, nan_propagation, {window_h, window_w}, {padding_h, padding_w}, {stride_h, stride_w}};
  return kSuccess;
}

PLIMSOLL_API int cudnnGetPooling2dDescriptor(const PoolingDescriptor* pooling, int* mode, int* nan_propagation,
                                             int* window_h, int* window_w, int* padding_h, int* padding_w,
                                             int* stride_h, int* stride_w) {
  if (!alive(pooling)) return kBadParam;
  put(mode, pooling->mode);
  put(nan_propagation, pooling->nan_propagation);
  put(window_h, pooling->window[0]);
  put(window_w, pooling->window[1]);
  put(padding_h, pooling->padding[0]);
  put(padding_w, pooling->padding[1]);
  put(stride_h, pooling->strides[0]);
  put(stride_w, pooling->strides[1]);
  return kSuccess;
}

PLIMSOLL_CUDNN_WORK(cudnnPoolingForward)
PLIMSOLL_CUDNN_WORK(cudnnPoolingBackward)

PLIMSOLL_CUDNN_DESCRIPTOR(SpatialTransformer, SpatialTransformerDescriptor)

PLIMSOLL_API int cudnnSetSpatialTransformerNdDescriptor(SpatialTransformerDescriptor* transformer, int sampler,
                                                        int data_type, int rank, const int* dimensions) {
  if (!alive(transformer)) return kBadParam;
  if (rank > 4) return kNotSupported;
  if (bytes_of(data_type) == 0 || !copy_dimensions(transformer->dimensions, rank, dimensions)) return kBadParam;
  transformer->sampler = sampler;
  transformer->data_type = data_type;
  transformer->rank = rank;
  return kSuccess;
}

PLIMSOLL_CUDNN_WORK(cudnnSpatialTfGridGeneratorForward)
PLIMSOLL_CUDNN_WORK(cudnnSpatialTfGridGeneratorBackward)
PLIMSOLL_CUDNN_WORK(cudnnSpatialTfSamplerForward)
PLIMSOLL_CUDNN_WORK(cudnnSpatialTfSamplerBackward)
