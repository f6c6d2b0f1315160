#pragma once

#include <c10/core/ScalarType.h>

#include <optional>
#include <torch/csrc/distributed/c10d/Types.hpp>

namespace plimsoll::fsdp {

/// How to divide the sum of the ranks' gradients: by the number of ranks, or by the user's factor.
struct DivideFactors {
  std::optional<double> before;  ///< Divisor before the reduction.
  std::optional<double> after;   ///< Divisor after the reduction.
  c10d::ReduceOp reduce_scatter_op;
  c10d::ReduceOp all_reduce_op;
};

/// In fp32 and bf16 the collective divides. In narrower ranges (fp16), half of the division comes before the sum,
/// against overflow, and half after it, against underflow. `all_reduce_size` is absent without HSDP. Mirrors
/// _get_gradient_divide_factors (torch 2.13).
DivideFactors gradient_divide_factors(int reduce_scatter_size, std::optional<int> all_reduce_size,
                                      at::ScalarType reduce_dtype, std::optional<double> factor, bool force_sum);

}  // namespace plimsoll::fsdp
