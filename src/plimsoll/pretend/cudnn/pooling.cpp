#include "plimsoll/pretend/cudnn/handle.h"

namespace plimsoll::pretend::cudnn {

/// cudnnPoolingDescriptor_t, two-dimensional: the only kind that torch uses.
struct PoolingDescriptor : Object<0x43444e50> {
  int mode = 0;
  int nan_propagation = 0;
  int window[2] = {0, 0};
  int padding[2] = {0, 0};
  int strides[2] = {0, 0};
};

}  // namespace plimsoll::pretend::cudnn

using namespace plimsoll::pretend::cudnn;

PLIMSOLL_API int cudnnCreatePoolingDescriptor(PoolingDescriptor** out) { return create(out); }
PLIMSOLL_API int cudnnDestroyPoolingDescriptor(PoolingDescriptor* pooling) { return destroy(pooling); }

PLIMSOLL_API int cudnnSetPooling2dDescriptor(PoolingDescriptor* pooling, int mode, int nan_propagation, int window_h,
                                             int window_w, int padding_h, int padding_w, int stride_h, int stride_w) {
  if (live(pooling) == nullptr || window_h <= 0 || window_w <= 0 || stride_h <= 0 || stride_w <= 0) return kBadParam;
  if (padding_h < 0 || padding_w < 0) return kBadParam;
  pooling->mode = mode;
  pooling->nan_propagation = nan_propagation;
  pooling->window[0] = window_h;
  pooling->window[1] = window_w;
  pooling->padding[0] = padding_h;
  pooling->padding[1] = padding_w;
  pooling->strides[0] = stride_h;
  pooling->strides[1] = stride_w;
  return kSuccess;
}

PLIMSOLL_API int cudnnGetPooling2dDescriptor(const PoolingDescriptor* pooling, int* mode, int* nan_propagation,
                                             int* window_h, int* window_w, int* padding_h, int* padding_w,
                                             int* stride_h, int* stride_w) {
  if (live(pooling) == nullptr) return kBadParam;
  give(mode, pooling->mode);
  give(nan_propagation, pooling->nan_propagation);
  give(window_h, pooling->window[0]);
  give(window_w, pooling->window[1]);
  give(padding_h, pooling->padding[0]);
  give(padding_w, pooling->padding[1]);
  give(stride_h, pooling->strides[0]);
  give(stride_w, pooling->strides[1]);
  return kSuccess;
}

PLIMSOLL_CUDNN_WORK(cudnnPoolingForward)
PLIMSOLL_CUDNN_WORK(cudnnPoolingBackward)
