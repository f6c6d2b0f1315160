#pragma once

#include <ATen/core/Tensor.h>

#include "plimsoll/nn/optim/clip_grad_norm.h"

namespace plimsoll::fsdp {

/// nn::clip_grad_norm_ for parameters under FSDP: the norm is that of the whole gradients, over all ranks; each rank
/// scales its shards. Parameters that FSDP does not manage count as they are, once. Every rank must call this with the
/// same parameters: one collective for each mesh that they lie on.
at::Tensor clip_grad_norm_(at::TensorList parameters, double max_norm, const nn::ClipGradNormOptions& options = {});

/// The norm alone.
at::Tensor get_total_norm(at::TensorList parameters, const nn::ClipGradNormOptions& options = {});

}  // namespace plimsoll::fsdp
