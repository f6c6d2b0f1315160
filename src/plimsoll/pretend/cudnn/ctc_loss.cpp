#include <algorithm>

#include "plimsoll/pretend/cudnn/handle.h"
#include "plimsoll/pretend/cudnn/tensor_descriptor.h"

namespace plimsoll::pretend::cudnn {

/// cudnnCTCLossDescriptor_t.
struct CtcLossDescriptor : Object<0x43444e4c> {
  int compute_type = kFloat;
  int normalization = 0;
  int gradient_mode = 0;
  int max_label_length = 0;
};

namespace {

/// The workspace of the loss: the probabilities after softmax and the forward and backward variables, in float. A label
/// of length L has 2 L + 1 variables a time step. The algorithm needs these; the real size is not documented. REQUIRES:
/// `probabilities` is time × batch × classes.
Bytes workspace_bytes(const TensorDescriptor& probabilities, Bytes max_label_length) {
  const auto steps = static_cast<Bytes>(probabilities.dimensions[0]) * static_cast<Bytes>(probabilities.dimensions[1]);
  const auto classes = static_cast<Bytes>(probabilities.dimensions[2]);
  return steps * (classes + 2 * (2 * max_label_length + 1)) * sizeof(float);
}

int set(CtcLossDescriptor* loss, int compute_type, int normalization, int gradient_mode, int max_label_length) {
  if (!alive(loss) || max_label_length < 0) return kBadParam;
  if (compute_type != kFloat) return kNotSupported;
  *loss = {{}, compute_type, normalization, gradient_mode, max_label_length};
  return kSuccess;
}

int workspace(const Handle* handle, const CtcLossDescriptor* loss, const TensorDescriptor* probabilities,
              Bytes max_label_length, std::size_t* bytes) {
  if (!alive(handle) || !alive(loss) || !alive(probabilities)) return kBadParam;
  if (probabilities->rank != 3 || bytes == nullptr) return kBadParam;
  *bytes = workspace_bytes(*probabilities, max_label_length);
  return kSuccess;
}

}  // namespace
}  // namespace plimsoll::pretend::cudnn

using namespace plimsoll::pretend;
using namespace plimsoll::pretend::cudnn;

PLIMSOLL_CUDNN_DESCRIPTOR(CTCLoss, CtcLossDescriptor)

PLIMSOLL_API int cudnnSetCTCLossDescriptor(CtcLossDescriptor* loss, int compute_type) {
  return set(loss, compute_type, 0, 0, 0);
}
PLIMSOLL_API int cudnnSetCTCLossDescriptorEx(CtcLossDescriptor* loss, int compute_type, int normalization,
                                             int gradient_mode) {
  return set(loss, compute_type, normalization, gradient_mode, 0);
}
PLIMSOLL_API int cudnnSetCTCLossDescriptor_v8(CtcLossDescriptor* loss, int compute_type, int normalization,
                                              int gradient_mode, int max_label_length) {
  return set(loss, compute_type, normalization, gradient_mode, max_label_length);
}
PLIMSOLL_ALIAS(cudnnSetCTCLossDescriptor_v9, cudnnSetCTCLossDescriptor_v8);

/// This form has the lengths on the host.
PLIMSOLL_API int cudnnGetCTCLossWorkspaceSize(const Handle* handle, const TensorDescriptor* probabilities,
                                              const TensorDescriptor* /*gradients*/, const int* /*labels*/,
                                              const int* label_lengths, const int* /*input_lengths*/, int /*algorithm*/,
                                              const CtcLossDescriptor* loss, std::size_t* bytes) {
  if (!alive(probabilities) || probabilities->rank != 3 || label_lengths == nullptr) return kBadParam;
  if (!is_host(label_lengths)) return kBadParam;
  const int longest = *std::max_element(label_lengths, label_lengths + probabilities->dimensions[1]);
  return workspace(handle, loss, probabilities, static_cast<plimsoll::Bytes>(std::max(longest, 0)), bytes);
}

/// This form has the lengths on the device: the descriptor has the maximum length of a label.
PLIMSOLL_API int cudnnGetCTCLossWorkspaceSize_v8(const Handle* handle, int /*algorithm*/, const CtcLossDescriptor* loss,
                                                 const TensorDescriptor* probabilities,
                                                 const TensorDescriptor* /*gradients*/, std::size_t* bytes) {
  if (!alive(loss)) return kBadParam;
  return workspace(handle, loss, probabilities, static_cast<plimsoll::Bytes>(loss->max_label_length), bytes);
}

PLIMSOLL_CUDNN_WORK(cudnnCTCLoss)
PLIMSOLL_CUDNN_WORK(cudnnCTCLoss_v8)
