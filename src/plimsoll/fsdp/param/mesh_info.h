#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "plimsoll/distributed/device_mesh.h"
#include "plimsoll/fsdp/policies.h"

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

/// The ranks over which parameters are sharded after forward: those of `mesh_info`, fewer, or null if they stay whole.
/// Mirrors _get_post_forward_mesh_info (torch 2.13).
MeshInfo post_forward_mesh(const ReshardAfterForward& reshard_after_forward, const MeshInfo& mesh_info);

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

/// The range of a rank's part of a dimension, split like torch.chunk: parts of equal length, then a shorter one, then
/// empty ones. Computed, not split: the cost does not grow with the number of ranks.
struct ChunkRange {
  std::int64_t start;
  std::int64_t length;
  std::int64_t padded_length;  ///< The length of the first part.
};

inline ChunkRange chunk_range(std::int64_t size, int chunks, int index) {
  const std::int64_t padded = (size + chunks - 1) / chunks;
  const std::int64_t start = std::min(size, padded * index);
  return {.start = start, .length = std::min(padded, size - start), .padded_length = padded};
}

inline std::vector<std::int64_t> with_dim(at::IntArrayRef size, std::int64_t dim, std::int64_t length) {
  auto changed = size.vec();
  changed[static_cast<std::size_t>(dim)] = length;
  return changed;
}

inline std::vector<std::int64_t> contiguous_strides(at::IntArrayRef size) {
  std::vector<std::int64_t> strides(size.size(), 1);
  for (std::size_t i = size.size(); i-- > 1;) strides[i - 1] = strides[i] * std::max<std::int64_t>(size[i], 1);
  return strides;
}

}  // namespace plimsoll::fsdp
