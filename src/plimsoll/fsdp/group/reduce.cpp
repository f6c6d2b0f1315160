#include "plimsoll/fsdp/group/reduce.h"

#include <ATen/Functions.h>
#include <c10/core/GradMode.h>

#include <cmath>
#include <utility>

#include "plimsoll/fsdp/runtime_observer.h"
#include "plimsoll/nn/optim/python_values.h"

namespace plimsoll::fsdp {
namespace {

using c10d::ReduceOp;

/// How to divide the sum of the ranks' gradients: by the number of ranks, or by the user's factor.
struct DivideFactors {
  std::optional<double> before;  ///< Divisor before the reduction.
  std::optional<double> after;   ///< Divisor after the reduction.
  ReduceOp reduce_scatter_op;
  ReduceOp all_reduce_op;
};

/// In fp32 and bf16 the collective divides. In narrower ranges (fp16), half of the division comes before the sum,
/// against overflow, and half after it, against underflow. `all_reduce_size` is absent without HSDP. Mirrors
/// _get_gradient_divide_factors (torch 2.13).
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

void divide_if_needed(at::Tensor& tensor, std::optional<double> factor) {
  if (factor && *factor != 1) tensor.div_(nn::as_tensor(*factor));
}

at::ScalarType common_dtype(const std::vector<at::Tensor>& grads, std::string_view what) {
  const at::ScalarType dtype = grads[0].scalar_type();
  for (const at::Tensor& grad : grads) {
    TORCH_CHECK(grad.scalar_type() == dtype, "The gradients of ", what, " have different dtypes (", dtype, " and ",
                grad.scalar_type(),
                "), but are reduced together. Give the parameters one dtype, or fully_shard them separately.");
  }
  return dtype;
}

// Tensors that the variables of Python's loop over the gradients still reference after the loop: they are freed when
// the function returns. The order matters.
struct LoopVariables {
  at::Tensor unsharded_grad;
  at::Tensor chunks_of;
  ~LoopVariables() {
    unsharded_grad.reset();
    chunks_of.reset();
  }
};

// Copies gradients of parameters that are split along another dimension: their shards one after the other.
void order_by_shard(const std::vector<FSDPParam*>& params, std::vector<at::Tensor>& grads, int world_size,
                    LoopVariables& variables) {
  at::Tensor in_iterator;  // Python's zip reuses every second tuple, which keeps its contents until then.
  for (std::size_t i = 0; i < params.size(); ++i) {
    if (i % 2 == 0) in_iterator = grads[i];
    variables.unsharded_grad = grads[i];
    const auto dim = params[i]->shard_dim();
    if (dim == 0) continue;
    auto chunks = variables.unsharded_grad.chunk(world_size, dim);
    variables.chunks_of = variables.unsharded_grad;
    const MemoryScope memory(MemoryUse::kUnshardedGrad);
    grads[i] = at::cat(chunks, 0);
  }
}

at::Tensor allocate(const ReducePlan& plan, MemoryUse use, std::int64_t numel, at::ScalarType dtype) {
  const MemoryScope memory(use);
  return plan.reduce_scatter_comm.allocate(numel, dtype, plan.device);
}

// Runs on the current stream. Frees the gradients.
at::Tensor copy_in(std::vector<at::Tensor>& grads, std::int64_t numel, at::ScalarType dtype, int world_size,
                   const ReducePlan& plan) {
  at::Tensor input = allocate(plan, MemoryUse::kReduceScatterInput, numel, dtype);
  at::Tensor rows = input.view({world_size, -1});
  at::_chunk_cat_out(rows, grads, /*dim=*/0, /*num_chunks=*/world_size);
  while (!grads.empty()) grads.pop_back();
  return input;
}

// One parameter's part of the reduced buffer becomes the gradient of its shard, or is added to it.
void accumulate_sharded_grad(FSDPParam& param, at::Tensor grad, const Stream& post_reduce_stream) {
  param.show_sharded_grad();
  const bool accumulates = param.param().grad().defined();
  if (param.offload_to_cpu()) {
    // The copy may be asynchronous only if the CPU does not read the gradient during backward.
    const bool non_blocking = param.pin_memory() && !accumulates && !param.has_post_accumulate_grad_hooks();
    grad = grad.to(at::kCPU, grad.scalar_type(), non_blocking);
    if (non_blocking) param.grad_offload_event = post_reduce_stream.record_event();
  }
  if (accumulates) {
    param.param().mutable_grad().add_(grad);
  } else {
    param.set_sharded_grad(std::move(grad));
  }
  param.run_post_accumulate_grad_hooks();
}

}  // namespace

ReduceResult foreach_reduce(const std::vector<FSDPParam*>& params, std::vector<at::Tensor>& unsharded_grads,
                            const ReducePlan& plan, at::Tensor partial_reduce_output) {
  const at::NoGradGuard no_grad;
  const at::ScalarType reduce_dtype = plan.reduce_dtype.value_or(common_dtype(unsharded_grads, plan.what));
  const int world_size = plan.reduce_scatter_group->getSize();
  const DivideFactors factors = gradient_divide_factors(
      world_size, plan.all_reduce_group ? std::optional<int>((*plan.all_reduce_group)->getSize()) : std::nullopt,
      reduce_dtype, plan.gradient_divide_factor, plan.force_sum_reduction_for_comms);
  const Stream current_stream = Stream::current(plan.device);

  at::Tensor reduce_output;
  ReduceResult result;
  LoopVariables variables;
  if (world_size > 1) order_by_shard(params, unsharded_grads, world_size, variables);
  std::vector<std::int64_t> padded_numels;
  std::int64_t input_numel = 0;
  for (const at::Tensor& grad : unsharded_grads) {
    const auto rows = (grad.size(0) + world_size - 1) / world_size * world_size;
    padded_numels.push_back(grad.size(0) == 0 ? 0 : grad.numel() / grad.size(0) * rows);
    input_numel += padded_numels.back();
  }
  result.reduce_scatter_input = copy_in(unsharded_grads, input_numel, reduce_dtype, world_size, plan);
  plan.reduce_scatter_stream.wait_stream(current_stream);
  result.post_reduce_stream = plan.reduce_scatter_stream;
  {
    const StreamScope scope(plan.reduce_scatter_stream);
    reduce_output = allocate(plan, MemoryUse::kReduceScatterOutput, input_numel / world_size, reduce_dtype);
    divide_if_needed(result.reduce_scatter_input, factors.before);
    if (world_size > 1) {
      plan.reduce_scatter_comm(reduce_output, result.reduce_scatter_input, plan.reduce_scatter_group,
                               factors.reduce_scatter_op, /*async_op=*/false, plan.what);
    } else if (plan.gradient_divide_factor) {
      reduce_output.copy_(result.reduce_scatter_input.div(nn::as_tensor(*plan.gradient_divide_factor)));
    } else {
      reduce_output.copy_(result.reduce_scatter_input);
    }
    result.reduce_scatter_event = plan.reduce_scatter_stream.record_event();
    if (plan.all_reduce_group) {
      if (!plan.all_reduce_grads) {
        result.partial_reduce_output =
            partial_reduce_output.defined() ? partial_reduce_output.add_(reduce_output) : std::move(reduce_output);
        notify(MemoryUse::kPartialGrad, result.partial_reduce_output);
        result.post_reduce_event = plan.reduce_scatter_stream.record_event();
        return result;
      }
      if (partial_reduce_output.defined()) reduce_output.add_(partial_reduce_output);
      result.post_reduce_stream = plan.all_reduce_stream;
      plan.all_reduce_stream.wait_stream(plan.reduce_scatter_stream);
      const StreamScope all_reduce(plan.all_reduce_stream);
      notify(MemoryUse::kAllReduce, reduce_output);
      distributed::all_reduce(reduce_output, *plan.all_reduce_group, factors.all_reduce_op, /*async_op=*/false,
                              plan.what);
      result.all_reduce_input = reduce_output;
      result.all_reduce_event = plan.all_reduce_stream.record_event();
    }
  }
  if (plan.all_reduce_hook) {
    result.post_reduce_stream = plan.all_reduce_stream;
    plan.all_reduce_stream.wait_stream(plan.reduce_scatter_stream);
    const StreamScope scope(plan.all_reduce_stream);
    plan.all_reduce_hook(reduce_output);
  }
  const StreamScope scope(result.post_reduce_stream);
  divide_if_needed(reduce_output, factors.after);
  if (plan.orig_dtype && reduce_output.scalar_type() != *plan.orig_dtype) {
    const MemoryScope memory(MemoryUse::kReduceScatterOutput);
    reduce_output = reduce_output.to(*plan.orig_dtype);
  }
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < params.size(); ++i) {
    FSDPParam& param = *params[i];
    accumulate_sharded_grad(param,
                            reduce_output.as_strided(param.sharded_size(), param.contiguous_sharded_stride(), offset),
                            result.post_reduce_stream);
    offset += padded_numels[i] / world_size;
  }
  result.post_reduce_event = result.post_reduce_stream.record_event();
  return result;
}

}  // namespace plimsoll::fsdp
