#pragma once

#include <ATen/core/Tensor.h>

#include <string_view>

#include "plimsoll/distributed/collectives.h"

/// Communication of parameters and gradients. The defaults are torch's collectives on buffers of the caching allocator.
/// FSDPModule::set_custom_all_gather and set_custom_reduce_scatter replace them.
namespace plimsoll::fsdp {

class Comm {
 public:
  virtual ~Comm() = default;
  /// A 1-D buffer for communication. Called on the stream that uses it first.
  virtual at::Tensor allocate(std::int64_t numel, at::ScalarType dtype, at::Device device);
};

class AllGather : public Comm {
 public:
  /// Returns the work to wait for, or null. `what` is the module's name for messages.
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
