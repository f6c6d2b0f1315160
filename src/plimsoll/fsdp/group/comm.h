#pragma once

#include <ATen/core/Tensor.h>

#include <string_view>

#include "plimsoll/distributed/collectives.h"

/// How parameters and gradients travel. The defaults are torch's collectives over buffers of the caching allocator;
/// others are given with FSDPModule::set_custom_all_gather and set_custom_reduce_scatter.
namespace plimsoll::fsdp {

class Comm {
 public:
  virtual ~Comm() = default;
  /// A buffer of one dimension to communicate from or into. Called on the stream it is first used on.
  virtual at::Tensor allocate(std::int64_t numel, at::ScalarType dtype, at::Device device);
};

class AllGather : public Comm {
 public:
  /// The work to wait for, or null where there is nothing to wait for. `what` names the module, for messages.
  virtual distributed::Work operator()(const at::Tensor& output, const at::Tensor& input,
                                       const distributed::ProcessGroup& group, bool async_op, std::string_view what);
};

class ReduceScatter : public Comm {
 public:
  virtual distributed::Work operator()(const at::Tensor& output, const at::Tensor& input,
                                       const distributed::ProcessGroup& group, const c10d::ReduceOp& op, bool async_op,
                                       std::string_view what);
};

}  // namespace plimsoll::fsdp
