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

}  // namespace plimsoll::fsdp
