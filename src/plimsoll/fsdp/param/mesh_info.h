#pragma once

#include <memory>
#include <optional>

#include "plimsoll/distributed/device_mesh.h"

namespace plimsoll::fsdp {

using distributed::DeviceMesh;
using distributed::ProcessGroup;

/// The layout of a parameter group on a mesh: sharded along one dimension (FSDP), and possibly replicated along another
/// (HSDP). Groups that communicate together share one object. Counterpart of FSDPMeshInfo and HSDPMeshInfo.
struct FSDPMeshInfo {
  /// A 1-D mesh is sharded along its dimension; a 2-D mesh is replicated along the first and sharded along the second.
  explicit FSDPMeshInfo(DeviceMesh mesh);

  bool is_hsdp() const { return replicate_process_group.has_value(); }

  DeviceMesh mesh;
  ProcessGroup shard_process_group;
  int shard_mesh_size;
  int shard_mesh_rank;
  std::optional<ProcessGroup> replicate_process_group;
  /// Null: the shard's group also reduces. FSDPModule::set_separate_reduce_scatter_group sets a separate one.
  ProcessGroup reduce_scatter_process_group;
};

using MeshInfo = std::shared_ptr<FSDPMeshInfo>;

}  // namespace plimsoll::fsdp
