#include <algorithm>

#include "plimsoll/pretend/cudnn/handle.h"
#include "plimsoll/pretend/cudnn/tensor_descriptor.h"

/// The classic convolution interface, which torch uses if its graph path is disabled. Each family offers one algorithm,
/// which by definition needs no workspace (the implicit product forward, the deterministic algorithm 1 backward). The
/// real library may prefer another one, whose workspace is not documented.
namespace plimsoll::pretend::cudnn {

/// cudnnConvolutionDescriptor_t.
struct ConvolutionDescriptor : Object<0x43444e43> {
  int rank = 0;
  Dimensions padding{};
  Dimensions strides{};
  Dimensions dilation{};
  int mode = 0;
  int compute_type = kFloat;
  int math_type = 0;
  int groups = 1;
};

namespace {

constexpr int kForwardImplicitGemm = 0;
constexpr int kForwardAlgorithms = 8;
constexpr int kBackwardFilter1 = 1;
constexpr int kBackwardFilterAlgorithms = 7;
constexpr int kBackwardData1 = 1;
constexpr int kBackwardDataAlgorithms = 6;
constexpr std::size_t kWorkspace = 0;

int offer(const Handle* handle, const ConvolutionDescriptor* convolution, int algorithm, int requested, int* returned,
          AlgorithmPerformance* results) {
  if (live(handle) == nullptr || live(convolution) == nullptr) return kBadParam;
  if (requested < 1 || returned == nullptr || results == nullptr) return kBadParam;
  results[0] = AlgorithmPerformance{algorithm, kSuccess, 0.001F, kWorkspace, 1, convolution->math_type, {0, 0, 0}};
  *returned = 1;
  return kSuccess;
}

int workspace(const Handle* handle, const ConvolutionDescriptor* convolution, int algorithm, int algorithms,
              std::size_t* bytes) {
  if (live(handle) == nullptr || live(convolution) == nullptr || bytes == nullptr) return kBadParam;
  if (algorithm < 0 || algorithm >= algorithms) return kBadParam;
  *bytes = kWorkspace;
  return kSuccess;
}

}  // namespace
}  // namespace plimsoll::pretend::cudnn

using namespace plimsoll::pretend::cudnn;
using Tensor = const TensorDescriptor*;
using Filter = const FilterDescriptor*;
using Convolution = const ConvolutionDescriptor*;

PLIMSOLL_API int cudnnCreateConvolutionDescriptor(ConvolutionDescriptor** out) { return create(out); }
PLIMSOLL_API int cudnnDestroyConvolutionDescriptor(ConvolutionDescriptor* convolution) { return destroy(convolution); }

PLIMSOLL_API int cudnnSetConvolutionNdDescriptor(ConvolutionDescriptor* convolution, int rank, const int* padding,
                                                 const int* strides, const int* dilation, int mode, int compute_type) {
  if (live(convolution) == nullptr || padding == nullptr) return kBadParam;
  if (rank < 1 || rank > kMaxDimensions - 2) return kNotSupported;
  if (std::any_of(padding, padding + rank, [](int n) { return n < 0; })) return kBadParam;
  if (!copy_dimensions(convolution->strides, rank, strides)) return kBadParam;
  if (!copy_dimensions(convolution->dilation, rank, dilation)) return kBadParam;
  std::copy_n(padding, rank, convolution->padding.begin());
  convolution->rank = rank;
  convolution->mode = mode;
  convolution->compute_type = compute_type;
  return kSuccess;
}

PLIMSOLL_API int cudnnGetConvolutionNdDescriptor(Convolution convolution, int requested, int* rank, int* padding,
                                                 int* strides, int* dilation, int* mode, int* compute_type) {
  if (live(convolution) == nullptr || requested < 0) return kBadParam;
  give(rank, convolution->rank);
  give(mode, convolution->mode);
  give(compute_type, convolution->compute_type);
  const int n = std::min(requested, convolution->rank);
  if (padding != nullptr) std::copy_n(convolution->padding.begin(), n, padding);
  if (strides != nullptr) std::copy_n(convolution->strides.begin(), n, strides);
  if (dilation != nullptr) std::copy_n(convolution->dilation.begin(), n, dilation);
  return kSuccess;
}

PLIMSOLL_API int cudnnSetConvolutionGroupCount(ConvolutionDescriptor* convolution, int groups) {
  if (live(convolution) == nullptr || groups < 1) return kBadParam;
  convolution->groups = groups;
  return kSuccess;
}

PLIMSOLL_API int cudnnGetConvolutionGroupCount(Convolution convolution, int* groups) {
  if (live(convolution) == nullptr || groups == nullptr) return kBadParam;
  *groups = convolution->groups;
  return kSuccess;
}

PLIMSOLL_API int cudnnSetConvolutionMathType(ConvolutionDescriptor* convolution, int math_type) {
  if (live(convolution) == nullptr) return kBadParam;
  convolution->math_type = math_type;
  return kSuccess;
}

PLIMSOLL_API int cudnnGetConvolutionMathType(Convolution convolution, int* math_type) {
  if (live(convolution) == nullptr || math_type == nullptr) return kBadParam;
  *math_type = convolution->math_type;
  return kSuccess;
}

PLIMSOLL_API int cudnnGetConvolutionForwardAlgorithm_v7(const Handle* handle, Tensor, Filter, Convolution convolution,
                                                        Tensor, int requested, int* returned,
                                                        AlgorithmPerformance* results) {
  return offer(handle, convolution, kForwardImplicitGemm, requested, returned, results);
}

PLIMSOLL_API int cudnnFindConvolutionForwardAlgorithmEx(const Handle* handle, Tensor, const void*, Filter, const void*,
                                                        Convolution convolution, Tensor, void*, int requested,
                                                        int* returned, AlgorithmPerformance* results, void*,
                                                        std::size_t) {
  return offer(handle, convolution, kForwardImplicitGemm, requested, returned, results);
}

PLIMSOLL_API int cudnnGetConvolutionForwardWorkspaceSize(const Handle* handle, Tensor, Filter, Convolution convolution,
                                                         Tensor, int algorithm, std::size_t* bytes) {
  return workspace(handle, convolution, algorithm, kForwardAlgorithms, bytes);
}

PLIMSOLL_API int cudnnGetConvolutionBackwardDataAlgorithm_v7(const Handle* handle, Filter, Tensor,
                                                             Convolution convolution, Tensor, int requested,
                                                             int* returned, AlgorithmPerformance* results) {
  return offer(handle, convolution, kBackwardData1, requested, returned, results);
}

PLIMSOLL_API int cudnnFindConvolutionBackwardDataAlgorithmEx(const Handle* handle, Filter, const void*, Tensor,
                                                             const void*, Convolution convolution, Tensor, void*,
                                                             int requested, int* returned,
                                                             AlgorithmPerformance* results, void*, std::size_t) {
  return offer(handle, convolution, kBackwardData1, requested, returned, results);
}

PLIMSOLL_API int cudnnGetConvolutionBackwardDataWorkspaceSize(const Handle* handle, Filter, Tensor,
                                                              Convolution convolution, Tensor, int algorithm,
                                                              std::size_t* bytes) {
  return workspace(handle, convolution, algorithm, kBackwardDataAlgorithms, bytes);
}

PLIMSOLL_API int cudnnGetConvolutionBackwardFilterAlgorithm_v7(const Handle* handle, Tensor, Tensor,
                                                               Convolution convolution, Filter, int requested,
                                                               int* returned, AlgorithmPerformance* results) {
  return offer(handle, convolution, kBackwardFilter1, requested, returned, results);
}

PLIMSOLL_API int cudnnFindConvolutionBackwardFilterAlgorithmEx(const Handle* handle, Tensor, const void*, Tensor,
                                                               const void*, Convolution convolution, Filter, void*,
                                                               int requested, int* returned,
                                                               AlgorithmPerformance* results, void*, std::size_t) {
  return offer(handle, convolution, kBackwardFilter1, requested, returned, results);
}

PLIMSOLL_API int cudnnGetConvolutionBackwardFilterWorkspaceSize(const Handle* handle, Tensor, Tensor,
                                                                Convolution convolution, Filter, int algorithm,
                                                                std::size_t* bytes) {
  return workspace(handle, convolution, algorithm, kBackwardFilterAlgorithms, bytes);
}

PLIMSOLL_CUDNN_WORK(cudnnConvolutionForward)
PLIMSOLL_CUDNN_WORK(cudnnConvolutionBiasActivationForward)
PLIMSOLL_CUDNN_WORK(cudnnConvolutionBackwardData)
PLIMSOLL_CUDNN_WORK(cudnnConvolutionBackwardFilter)
PLIMSOLL_CUDNN_WORK(cudnnConvolutionBackwardBias)
