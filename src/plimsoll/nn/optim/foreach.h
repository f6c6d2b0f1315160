#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <string_view>
#include <vector>

#include "plimsoll/nn/optim/optimizer.h"
#include "plimsoll/nn/optim/python_values.h"

namespace plimsoll::nn {

/// Whether torch uses the foreach form by default for tensors of this device.
bool prefers_foreach(c10::DeviceType device);

/// The implementation for parameters with gradients: `asked`, or torch's choice for kDefault.
Implementation choose_implementation(Implementation asked, at::TensorList parameters);

/// Throws unless a fused kernel can step the parameter.
void check_fused(std::string_view optimizer, const at::Tensor& parameter);

/// Tensors for one foreach operator: those of the first list have one device and dtype.
struct TensorGroup {
  at::Device device;
  std::vector<TensorTuple> lists;    ///< One for each given list; undefined tensors stay undefined.
  std::vector<std::size_t> indices;  ///< Their indices in the given lists.
};

/// Splits lists of equal length (or empty) by the device and dtype of the first list's tensors. The groups have the
/// order of torch's own grouping, which determines the order of allocations. REQUIRES: the first list is not empty.
std::vector<TensorGroup> group_by_device_and_dtype(const std::vector<std::vector<at::Tensor>>& lists);

}  // namespace plimsoll::nn
