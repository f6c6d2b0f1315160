#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <variant>

#include "plimsoll/fsdp/param/mesh_info.h"

namespace plimsoll::fsdp {

/// The dimension along which a parameter is split; negative: counted from the last.
struct Shard {
  std::int64_t dim = 0;
};

/// A parameter's shard dimension and mesh. Parameters on the same mesh share one FSDPMeshInfo.
struct ShardPlacementResult {
  std::optional<Shard> placement;
  MeshInfo mesh_info;
};

/// Empty: dimension 0, on the mesh given to fully_shard.
using ShardPlacement = std::variant<std::monostate, Shard, ShardPlacementResult>;
using ShardPlacementFn = std::function<ShardPlacement(const at::Tensor& parameter)>;

/// Calls the function for a parameter and fills in the defaults. The function may be empty.
ShardPlacementResult resolve_shard_placement(const ShardPlacementFn& fn, const at::Tensor& parameter,
                                             const MeshInfo& default_mesh_info);

}  // namespace plimsoll::fsdp
