#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <functional>
#include <vector>

#include "plimsoll/nn/optim/sgd.h"

namespace plimsoll::nn {

/// The inputs of one SGD update: for each parameter with a gradient, at the same index, its gradient and its buffer.
struct SGDLists {
  std::vector<at::Tensor> parameters;
  std::vector<at::Tensor> gradients;
  std::vector<at::Tensor> momentum_buffers;  ///< Undefined before the first step. Empty if momentum is 0.
  bool has_sparse_gradient = false;
  /// Called directly after each buffer is created.
  std::function<void(std::size_t index, const at::Tensor& buffer)> created;
};

/// The three forms of the update. REQUIRES: gradient mode is off.
void sgd_for_loop(SGDLists& lists, const SGDOptions& options);
void sgd_foreach(SGDLists& lists, const SGDOptions& options);
void sgd_fused(SGDLists& lists, const SGDOptions& options);

}  // namespace plimsoll::nn
