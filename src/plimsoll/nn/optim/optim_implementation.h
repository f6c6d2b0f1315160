#pragma once

#include <ATen/core/Tensor.h>

#include <string_view>

#include "plimsoll/nn/optim/optimizer.h"

namespace plimsoll::nn {

/// Whether torch would take the foreach form for tensors of this device without being asked to.
bool prefers_foreach(c10::DeviceType device);

/// The implementation for parameters with gradients; what was asked for, or for kDefault torch's choice.
Implementation choose_implementation(Implementation asked, at::TensorList parameters);

/// Throws unless a fused kernel can step the parameter.
void check_fused(std::string_view optimizer, const at::Tensor& parameter);

}  // namespace plimsoll::nn
