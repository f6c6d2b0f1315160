#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

namespace plimsoll::fsdp {

class FSDPParamGroup;

/// Passes the tensors through autograd unchanged, and runs the group's post_backward when all their gradients are
/// computed. Counterpart of RegisterPostBackwardFunction. REQUIRES: all require gradients.
std::vector<at::Tensor> register_post_backward(std::shared_ptr<FSDPParamGroup> group,
                                               const std::vector<at::Tensor>& inputs);

}  // namespace plimsoll::fsdp
