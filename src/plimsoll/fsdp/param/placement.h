#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <variant>

#include "plimsoll/fsdp/param/mesh_info.h"

namespace plimsoll::fsdp {

/// Along which dimension a parameter is split; negative ones count from the last.
struct Shard {
  std::int64_t dim = 0;
};

/// A parameter's dimension together with the mesh it lies on. Parameters on the same mesh share one FSDPMeshInfo.
struct ShardPlacementResult {
  std::optional<Shard> placement;
  MeshInfo mesh_info;
};

/// Nothing: along dimension 0, on the mesh given to fully_shard.
using ShardPlacement = std::variant<std::monostate, Shard, ShardPlacementResult>;
using ShardPlacementFn = std::function<ShardPlacement(const at::Tensor& parameter)>;

/// What the function says of a parameter, with the defaults filled in. The function may be empty.
ShardPlacementResult resolve_shard_placement(const ShardPlacementFn& fn, const at::Tensor& parameter,
                                             const MeshInfo& default_mesh_info);

}  // namespace plimsoll::fsdp
