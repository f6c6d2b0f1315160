#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

namespace plimsoll::fsdp {

class FSDPParamGroup;

/// Passes the tensors through autograd unchanged, so that the group's post_backward runs when all their gradients are
/// there. Counterpart of RegisterPostBackwardFunction. REQUIRES: all need gradients.
std::vector<at::Tensor> register_post_backward(std::shared_ptr<FSDPParamGroup> group,
                                               const std::vector<at::Tensor>& inputs);

}  // namespace plimsoll::fsdp
