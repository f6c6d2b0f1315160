#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <utility>

/// Rotary positions: pairs of a head's elements are complex numbers, rotated by an angle that depends on the position.
namespace plimsoll::models {

/// On the CPU: one unit complex number for each position and pair.
at::Tensor rotations(std::int64_t head_dim, std::int64_t positions, double theta);

/// Queries and keys of (batch, length, heads, head_dim), rotated in fp32 by the first `length` rows of `turns`.
std::pair<at::Tensor, at::Tensor> rotate(const at::Tensor& q, const at::Tensor& k, const at::Tensor& turns);

}  // namespace plimsoll::models
