#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <optional>
#include <vector>

#include "plimsoll/fsdp/fsdp_module.h"
#include "plimsoll/fsdp/module_ref.h"
#include "plimsoll/fsdp/param/mesh_info.h"
#include "plimsoll/fsdp/policies.h"

/// Fully sharded data parallelism (FSDP2) for libtorch's C++ front end.
///
///     auto mesh = distributed::DeviceMesh::init(at::kCUDA, {distributed::get_world_size()});
///     for (auto& block : model->blocks) fsdp::fully_shard(block, {.mesh = mesh});
///     fsdp::fully_shard(model, {.mesh = mesh});
///     nn::AdamW optimizer(model->parameters());
///
/// The parameter objects stay the same, so the handles in modules and optimizers stay valid. Their data changes: this
/// rank's shard at rest, the whole parameter while the module runs.
namespace plimsoll::fsdp {

struct FullyShardOptions {
  /// 1-D: sharded (FSDP). 2-D with named dimensions: replicated along the first, sharded along the second (HSDP).
  /// Absent: all ranks of the default group, on the GPU if there is one.
  std::optional<DeviceMesh> mesh = std::nullopt;
  ReshardAfterForward reshard_after_forward = {};
  ShardPlacementFn shard_placement_fn = {};
  MixedPrecisionPolicy mp_policy = {};
  AnyOffloadPolicy offload_policy = {};
  /// Not sharded, not moved to the device, not reduced.
  std::vector<at::Tensor> ignored_params = {};
};

/// Shards the module's parameters, except those that an earlier call on a submodule took, as one group that is gathered
/// and reduced together. Call it on submodules first, on the model last. REQUIRES: the module has forward hooks
/// (nn::Hooked).
FSDPModule fully_shard(ModuleRef module, const FullyShardOptions& options = {});

/// The same for several modules that communicate as one group: gathered before the first one runs, freed after the
/// last.
FSDPModule fully_shard(std::vector<ModuleRef> modules, const FullyShardOptions& options = {});

}  // namespace plimsoll::fsdp
