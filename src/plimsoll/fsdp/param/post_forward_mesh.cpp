#include "plimsoll/fsdp/param/post_forward_mesh.h"

#include <c10/util/Exception.h>

#include <algorithm>

namespace plimsoll::fsdp {

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
                    "reshard_after_forward to fewer ranks needs a mesh that knows all of its ranks, and ",
                    mesh_info->mesh.to_string(), " was made from groups. Make it with DeviceMesh::init or from ranks.");
  const int rows = static_cast<int>(ranks.size()) / *world_size;
  return std::make_shared<FSDPMeshInfo>(DeviceMesh(mesh_info->mesh.device_type(), ranks, {rows, *world_size},
                                                   {"post_forward_replicate", "post_forward_shard"}));
}

}  // namespace plimsoll::fsdp
