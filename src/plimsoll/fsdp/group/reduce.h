#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "plimsoll/fsdp/group/comm.h"
#include "plimsoll/fsdp/group/streams.h"
#include "plimsoll/fsdp/param/fsdp_param.h"

namespace plimsoll::fsdp {

/// The inputs of a reduction besides the gradients.
struct ReducePlan {
  ProcessGroup reduce_scatter_group;
  Stream reduce_scatter_stream;
  ReduceScatter& reduce_scatter_comm;
  std::optional<at::ScalarType> orig_dtype;
  std::optional<at::ScalarType> reduce_dtype;
  at::Device device;
  std::optional<double> gradient_divide_factor;
  std::optional<ProcessGroup> all_reduce_group;  ///< Present with HSDP.
  Stream all_reduce_stream;
  bool all_reduce_grads;
  const std::function<void(at::Tensor)>& all_reduce_hook;
  bool force_sum_reduction_for_comms;
  std::string_view what;  ///< The module's name, for messages.
};

struct ReduceResult {
  at::Tensor reduce_scatter_input;  ///< Kept until its event: the next copy-in must not reuse its memory.
  Event reduce_scatter_event;
  Stream post_reduce_stream;
  Event post_reduce_event;      ///< The sharded gradients are complete.
  at::Tensor all_reduce_input;  ///< With HSDP: kept until its event.
  Event all_reduce_event;
  at::Tensor partial_reduce_output;  ///< With HSDP, while gradients are not all-reduced.
};

/// Copies the gradients into one buffer, on the current stream; reduces it over the ranks, on the reduce-scatter
/// stream; with HSDP reduces the result over the replicas, on the all-reduce stream; adds this rank's part to the
/// gradients of the shards. Empties `unsharded_grads`: their memory is free after the copy. Mirrors foreach_reduce
/// (torch 2.13).
ReduceResult foreach_reduce(const std::vector<FSDPParam*>& params, std::vector<at::Tensor>& unsharded_grads,
                            const ReducePlan& plan, at::Tensor partial_reduce_output);

}  // namespace plimsoll::fsdp
