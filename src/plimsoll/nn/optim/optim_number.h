#pragma once

#include <ATen/ScalarOps.h>
#include <ATen/core/Tensor.h>

namespace plimsoll::nn {

/// A number as an operand of an operator of two tensors, as Python passes it (`tensor.mul_(0.9)`): a tensor without
/// dimensions that does not take part in type promotion. The operators' overloads for numbers round it to the tensor's
/// dtype first, which gives other results in bfloat16.
inline at::Tensor as_tensor(const at::Scalar& number) { return at::native::wrapped_scalar_tensor(number); }

}  // namespace plimsoll::nn
