#include "plimsoll/fsdp/param/placement.h"

#include <c10/util/Exception.h>

namespace plimsoll::fsdp {

ShardPlacementResult resolve_shard_placement(const ShardPlacementFn& fn, const at::Tensor& parameter,
                                             const MeshInfo& default_mesh_info) {
  if (!fn) return {.placement = std::nullopt, .mesh_info = default_mesh_info};
  const ShardPlacement placement = fn(parameter);
  if (const auto* shard = std::get_if<Shard>(&placement)) return {.placement = *shard, .mesh_info = default_mesh_info};
  if (const auto* result = std::get_if<ShardPlacementResult>(&placement)) {
    TORCH_CHECK_VALUE(
        result->mesh_info != nullptr,
        "Expected shard_placement_fn to name a mesh in its ShardPlacementResult for the parameter of shape ",
        parameter.sizes(), ", found none. Return a Shard to use the mesh given to fully_shard.");
    return *result;
  }
  return {.placement = std::nullopt, .mesh_info = default_mesh_info};
}

}  // namespace plimsoll::fsdp
