#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <vector>

#include "plimsoll/nn/optim/optim_tensor_tuple.h"

namespace plimsoll::nn {

/// Tensors that one foreach operator may take together: the first list's are of one device and dtype.
struct TensorGroup {
  at::Device device;
  std::vector<TensorTuple> lists;    ///< One for each list given; undefined tensors stay undefined.
  std::vector<std::size_t> indices;  ///< Where in the lists given they stood.
};

/// Splits lists of equal length (or empty) by the device and dtype of the first list's tensors. The groups come in the
/// order in which torch's own grouping gives them, which decides the order of allocations. REQUIRES: the first list is
/// not empty.
std::vector<TensorGroup> group_by_device_and_dtype(const std::vector<std::vector<at::Tensor>>& lists);

}  // namespace plimsoll::nn
