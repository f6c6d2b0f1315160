#include "plimsoll/pretend/cudnn/handle.h"
#include "plimsoll/pretend/cudnn/tensor_descriptor.h"

/// Batch normalization. torch uses it without a fused activation. Its kernels keep the mean and the inverse deviation
/// in the caller's tensors. Their other memory is not documented; the answer is 0. With a fused ReLU, the forward pass
/// writes one bit an element to the reserve space, for the backward pass.
namespace plimsoll::pretend::cudnn {
namespace {

constexpr int kBatchNormOnly = 0;
constexpr int kOperations = 3;
constexpr int kModes = 3;

bool valid(const Handle* handle, int mode, int operations) {
  return alive(handle) && mode >= 0 && mode < kModes && operations >= 0 && operations < kOperations;
}

int no_workspace(const Handle* handle, int mode, int operations, std::size_t* bytes) {
  return valid(handle, mode, operations) ? give(bytes, 0, kBadParam) : kBadParam;
}

}  // namespace
}  // namespace plimsoll::pretend::cudnn

using namespace plimsoll::pretend::cudnn;
using Tensor = const TensorDescriptor*;

PLIMSOLL_API int cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(const Handle* handle, int mode,
                                                                          int operations, Tensor, Tensor, Tensor,
                                                                          Tensor, const void*, std::size_t* bytes) {
  return no_workspace(handle, mode, operations, bytes);
}

PLIMSOLL_API int cudnnGetBatchNormalizationBackwardExWorkspaceSize(const Handle* handle, int mode, int operations,
                                                                   Tensor, Tensor, Tensor, Tensor, Tensor, Tensor,
                                                                   const void*, std::size_t* bytes) {
  return no_workspace(handle, mode, operations, bytes);
}

PLIMSOLL_API int cudnnGetBatchNormalizationTrainingExReserveSpaceSize(const Handle* handle, int mode, int operations,
                                                                      const void*, Tensor x, std::size_t* bytes) {
  if (!valid(handle, mode, operations) || !alive(x) || bytes == nullptr) return kBadParam;
  *bytes = operations == kBatchNormOnly ? 0 : (static_cast<std::size_t>(x->elements()) + 7) / 8;
  return kSuccess;
}

PLIMSOLL_CUDNN_WORK(cudnnBatchNormalizationForwardInference)
PLIMSOLL_CUDNN_WORK(cudnnBatchNormalizationForwardTraining)
PLIMSOLL_CUDNN_WORK(cudnnBatchNormalizationForwardTrainingEx)
PLIMSOLL_CUDNN_WORK(cudnnBatchNormalizationBackward)
PLIMSOLL_CUDNN_WORK(cudnnBatchNormalizationBackwardEx)
