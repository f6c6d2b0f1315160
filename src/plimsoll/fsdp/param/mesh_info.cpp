#include "plimsoll/fsdp/param/mesh_info.h"

#include <c10/util/Exception.h>

namespace plimsoll::fsdp {
namespace {

int shard_dim_of(const DeviceMesh& mesh) {
  TORCH_CHECK_VALUE(
      mesh.ndim() == 1 || mesh.ndim() == 2, "Expected a mesh of one dimension (FSDP) or two (HSDP), found ",
      mesh.to_string(),
      ". Take the dimensions to shard and replicate along by their names: mesh[{\"replicate\", \"shard\"}].");
  TORCH_CHECK_VALUE(mesh.ndim() == 1 || !mesh.dim_names().empty(), "Expected names for the two dimensions of ",
                    mesh.to_string(), ": DeviceMesh::init(device, {replicas, shards}, {\"replicate\", \"shard\"}).");
  return mesh.ndim() - 1;
}

}  // namespace

FSDPMeshInfo::FSDPMeshInfo(DeviceMesh a_mesh)
    : mesh(std::move(a_mesh)),
      shard_process_group(mesh.get_group(shard_dim_of(mesh))),
      shard_mesh_size(mesh.size(mesh.ndim() - 1)),
      shard_mesh_rank(shard_process_group->getRank()) {
  if (mesh.ndim() == 2) replicate_process_group = mesh.get_group(0);
}

MeshInfo post_forward_mesh(const ReshardAfterForward& reshard_after_forward, const MeshInfo& mesh_info) {
  const auto world_size = reshard_after_forward.world_size();
  if (!world_size) return reshard_after_forward.reshards() ? mesh_info : nullptr;
  const int shard_size = mesh_info->shard_mesh_size;
  TORCH_CHECK_VALUE(*world_size >= 1 && *world_size <= shard_size && shard_size % *world_size == 0,
                    "Expected reshard_after_forward to divide the ", shard_size,
                    " ranks that parameters are sharded over, found ", *world_size, '.');
  if (*world_size == 1) {
    TORCH_WARN_ONCE("reshard_after_forward = 1 keeps parameters whole after forward, as false does; true frees them.");
    return nullptr;
  }
  if (*world_size == shard_size) return mesh_info;
  const auto& ranks = mesh_info->mesh.ranks();
  TORCH_CHECK_VALUE(std::find(ranks.begin(), ranks.end(), -1) == ranks.end(),
                    "reshard_after_forward to fewer ranks needs a mesh that knows all of its ranks, but ",
                    mesh_info->mesh.to_string(), " was made from groups. Make it with DeviceMesh::init or from ranks.");
  const int rows = static_cast<int>(ranks.size()) / *world_size;
  return std::make_shared<FSDPMeshInfo>(DeviceMesh(mesh_info->mesh.device_type(), ranks, {rows, *world_size},
                                                   {"post_forward_replicate", "post_forward_shard"}));
}

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
