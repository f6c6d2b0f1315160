#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

namespace plimsoll::nn {

struct ClipGradNormOptions {
  double norm_type = 2;             ///< The p of the p-norm; infinity for the largest absolute value.
  bool error_if_nonfinite = false;  ///< Throws where the norm is infinite or no number. Waits for the device.
  /// true: foreach operators, which CPU and most accelerators have; false: one operator a gradient; absent: foreach
  /// where there is.
  std::optional<bool> foreach = std::nullopt;
};

/// The norm of all tensors taken as one vector, on the first one's device; 0 for none.
/// Mirrors torch.nn.utils.get_total_norm.
at::Tensor get_total_norm(at::TensorList tensors, const ClipGradNormOptions& options = {});

/// Scales the gradients by max_norm / (total_norm + 1e-6) where that is below 1.
/// Mirrors torch.nn.utils.clip_grads_with_norm_.
void clip_grads_with_norm_(at::TensorList parameters, double max_norm, const at::Tensor& total_norm,
                           std::optional<bool> foreach = std::nullopt);

/// Scales the gradients of the parameters in place so that their norm is at most `max_norm`; returns the norm there
/// was. Parameters without a gradient are passed over. Mirrors torch.nn.utils.clip_grad_norm_ (torch 2.13), to the
/// allocation.
at::Tensor clip_grad_norm_(at::TensorList parameters, double max_norm, const ClipGradNormOptions& options = {});

/// As above, in torch's order of arguments.
at::Tensor clip_grad_norm_(at::TensorList parameters, double max_norm, double norm_type,
                           bool error_if_nonfinite = false, std::optional<bool> foreach = std::nullopt);

}  // namespace plimsoll::nn
