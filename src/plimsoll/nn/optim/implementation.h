#pragma once

#include <ATen/core/Tensor.h>

#include <string_view>

#include "plimsoll/nn/optim/optimizer.h"

namespace plimsoll::nn {

/// Whether torch uses the foreach form by default for tensors of this device.
bool prefers_foreach(c10::DeviceType device);

/// The implementation for parameters with gradients: `asked`, or torch's choice for kDefault.
Implementation choose_implementation(Implementation asked, at::TensorList parameters);

/// Throws unless a fused kernel can step the parameter.
void check_fused(std::string_view optimizer, const at::Tensor& parameter);

}  // namespace plimsoll::nn
