#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

namespace plimsoll::nn {

struct ClipGradNormOptions {
  double norm_type = 2;             ///< The p of the p-norm; infinity for the largest absolute value.
  bool error_if_nonfinite = false;  ///< Throws if the norm is infinite or NaN. Synchronises with the device.
  /// true: foreach operators, which the CPU and most accelerators have; false: one operator per gradient; absent:
  /// foreach if available.
  std::optional<bool> foreach = std::nullopt;
};

/// The norm of all tensors as one vector, on the first one's device; 0 for no tensors. Mirrors
/// torch.nn.utils.get_total_norm.
at::Tensor get_total_norm(at::TensorList tensors, const ClipGradNormOptions& options = {});

/// Scales the gradients by max_norm / (total_norm + 1e-6) if that is below 1. Mirrors
/// torch.nn.utils.clip_grads_with_norm_.
void clip_grads_with_norm_(at::TensorList parameters, double max_norm, const at::Tensor& total_norm,
                           std::optional<bool> foreach = std::nullopt);

/// Scales the gradients of the parameters in place to a norm of at most `max_norm`; returns the norm before. Parameters
/// without a gradient are ignored. Mirrors torch.nn.utils.clip_grad_norm_ (torch 2.13), to the allocation.
at::Tensor clip_grad_norm_(at::TensorList parameters, double max_norm, const ClipGradNormOptions& options = {});

/// The same, in torch's order of arguments.
at::Tensor clip_grad_norm_(at::TensorList parameters, double max_norm, double norm_type,
                           bool error_if_nonfinite = false, std::optional<bool> foreach = std::nullopt);

}  // namespace plimsoll::nn
