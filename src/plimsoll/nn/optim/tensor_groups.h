#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <vector>

#include "plimsoll/nn/optim/python_values.h"

namespace plimsoll::nn {

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
