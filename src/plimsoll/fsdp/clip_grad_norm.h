#pragma once

#include <ATen/core/Tensor.h>

#include "plimsoll/nn/optim/clip_grad_norm.h"

namespace plimsoll::fsdp {

/// nn::clip_grad_norm_ for parameters under FSDP. The norm is that of the whole gradients, over all ranks; each rank
/// scales its shards. Parameters without FSDP count once. Every rank must call this with the same parameters: it issues
/// one collective for each mesh.
at::Tensor clip_grad_norm_(at::TensorList parameters, double max_norm, const nn::ClipGradNormOptions& options = {});

/// Returns the norm without clipping.
at::Tensor get_total_norm(at::TensorList parameters, const nn::ClipGradNormOptions& options = {});

}  // namespace plimsoll::fsdp
