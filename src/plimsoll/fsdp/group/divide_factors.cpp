#include "plimsoll/fsdp/group/divide_factors.h"

#include <cmath>

namespace plimsoll::fsdp {

using c10d::ReduceOp;

DivideFactors gradient_divide_factors(int reduce_scatter_size, std::optional<int> all_reduce_size,
                                      at::ScalarType reduce_dtype, std::optional<double> factor, bool force_sum) {
  const bool overflow_risk = reduce_dtype != at::kFloat && reduce_dtype != at::kBFloat16;
  const int data_parallel_size = reduce_scatter_size * all_reduce_size.value_or(1);
  if (!overflow_risk && !force_sum) {
    if (!factor) {
      const ReduceOp op = data_parallel_size == 1 ? ReduceOp::SUM : ReduceOp::AVG;
      return {.before = {}, .after = {}, .reduce_scatter_op = op, .all_reduce_op = op};
    }
    const ReduceOp op = *factor == reduce_scatter_size ? ReduceOp(ReduceOp::AVG) : c10d::makePreMulSum(1 / *factor);
    return {.before = {}, .after = {}, .reduce_scatter_op = op, .all_reduce_op = ReduceOp::SUM};
  }
  const double whole = factor.value_or(data_parallel_size);
  DivideFactors factors{
      .before = {}, .after = whole, .reduce_scatter_op = ReduceOp::SUM, .all_reduce_op = ReduceOp::SUM};
  if (overflow_risk) {
    double before = 1;
    while (std::fmod(whole, before) == 0 && whole / before > before) before *= 2;
    factors.before = before;
    factors.after = whole / before;
  }
  return factors;
}

}  // namespace plimsoll::fsdp
