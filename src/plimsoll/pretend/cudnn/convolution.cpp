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
constexpr int kBackwardData1 = 1;
constexpr int kBackwardFilter1 = 1;
constexpr std::size_t kWorkspace = 0;

int offer(const Handle* handle, const ConvolutionDescriptor* convolution, int algorithm, int requested, int* returned,
          AlgorithmPerformance* results) {
  if (!alive(handle) || !alive(convolution)) return kBadParam;
  if (requested < 1 || returned == nullptr || results == nullptr) return kBadParam;
  results[0] = AlgorithmPerformance{algorithm, kSuccess, 0.001F, kWorkspace, 1, convolution->math_type, {0, 0, 0}};
  *returned = 1;
  return kSuccess;
}

int workspace(const Handle* handle, const ConvolutionDescriptor* convolution, int algorithm, int algorithms,
              std::size_t* bytes) {
  if (!alive(handle) || !alive(convolution) || bytes == nullptr) return kBadParam;
  if (algorithm < 0 || algorithm >= algorithms) return kBadParam;
  *bytes = kWorkspace;
  return kSuccess;
}

}  // namespace
}  // namespace plimsoll::pretend::cudnn

using namespace plimsoll::pretend;
using namespace plimsoll::pretend::cudnn;
using Convolution = const ConvolutionDescriptor*;

PLIMSOLL_CUDNN_DESCRIPTOR(Convolution, ConvolutionDescriptor)

PLIMSOLL_API int cudnnSetConvolutionNdDescriptor(ConvolutionDescriptor* convolution, int rank, const int* padding,
                                                 const int* strides, const int* dilation, int mode, int compute_type) {
  if (!alive(convolution) || padding == nullptr) return kBadParam;
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
  if (!alive(convolution) || requested < 0) return kBadParam;
  put(rank, convolution->rank);
  put(mode, convolution->mode);
  put(compute_type, convolution->compute_type);
  const int n = std::min(requested, convolution->rank);
  if (padding != nullptr) std::copy_n(convolution->padding.begin(), n, padding);
  if (strides != nullptr) std::copy_n(convolution->strides.begin(), n, strides);
  if (dilation != nullptr) std::copy_n(convolution->dilation.begin(), n, dilation);
  return kSuccess;
}

PLIMSOLL_API int cudnnSetConvolutionGroupCount(ConvolutionDescriptor* convolution, int groups) {
  if (!alive(convolution) || groups < 1) return kBadParam;
  convolution->groups = groups;
  return kSuccess;
}

PLIMSOLL_API int cudnnGetConvolutionGroupCount(Convolution convolution, int* groups) {
  return alive(convolution) ? give(groups, convolution->groups, kBadParam) : kBadParam;
}

PLIMSOLL_API int cudnnSetConvolutionMathType(ConvolutionDescriptor* convolution, int math_type) {
  if (!alive(convolution)) return kBadParam;
  convolution->math_type = math_type;
  return kSuccess;
}

PLIMSOLL_API int cudnnGetConvolutionMathType(Convolution convolution, int* math_type) {
  return alive(convolution) ? give(math_type, convolution->math_type, kBadParam) : kBadParam;
}

// The functions of one direction: the algorithm that is offered, and the number of algorithms that exist.
#define PLIMSOLL_CUDNN_CONVOLUTION(Direction, offered, algorithms)                                                    \
  PLIMSOLL_API int cudnnGetConvolution##Direction##Algorithm_v7(const Handle* handle, const void*, const void*,       \
                                                                Convolution convolution, const void*, int requested,  \
                                                                int* returned, AlgorithmPerformance* results) {       \
    return offer(handle, convolution, offered, requested, returned, results);                                         \
  }                                                                                                                   \
  PLIMSOLL_API int cudnnFindConvolution##Direction##AlgorithmEx(                                                      \
      const Handle* handle, const void*, const void*, const void*, const void*, Convolution convolution, const void*, \
      void*, int requested, int* returned, AlgorithmPerformance* results) {                                           \
    return offer(handle, convolution, offered, requested, returned, results);                                         \
  }                                                                                                                   \
  PLIMSOLL_API int cudnnGetConvolution##Direction##WorkspaceSize(const Handle* handle, const void*, const void*,      \
                                                                 Convolution convolution, const void*, int algorithm, \
                                                                 std::size_t* bytes) {                                \
    return workspace(handle, convolution, algorithm, algorithms, bytes);                                              \
  }                                                                                                                   \
  PLIMSOLL_CUDNN_WORK(cudnnConvolution##Direction)
PLIMSOLL_CUDNN_CONVOLUTION(Forward, kForwardImplicitGemm, 8)
PLIMSOLL_CUDNN_CONVOLUTION(BackwardData, kBackwardData1, 6)
PLIMSOLL_CUDNN_CONVOLUTION(BackwardFilter, kBackwardFilter1, 7)

PLIMSOLL_CUDNN_WORK(cudnnConvolutionBiasActivationForward)
PLIMSOLL_CUDNN_WORK(cudnnConvolutionBackwardBias)
