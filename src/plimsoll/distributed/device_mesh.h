#pragma once

#include <c10/core/Device.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/distributed/process_group.h"

namespace plimsoll::distributed {

/// The ranks of a job in one or more dimensions, with a process group along each dimension through this rank.
/// Counterpart of torch.distributed.device_mesh.DeviceMesh. A handle: copies are the same mesh.
class DeviceMesh {
 public:
  /// All ranks of the default group, row by row. Names are optional, but submeshes need them. Throws if the product of
  /// the shape is not the world size. Every rank must call this. For CUDA, makes LOCAL_RANK (or the rank modulo the
  /// number of devices) the current device, unless one was chosen.
  static DeviceMesh init(c10::DeviceType device_type, std::vector<int> shape, std::vector<std::string> dim_names = {});

  /// The given ranks, row by row. REQUIRES: they are distinct and contain this process's rank, and every rank among
  /// them makes the same mesh at the same point.
  DeviceMesh(c10::DeviceType device_type, std::vector<int> ranks, std::vector<int> shape,
             std::vector<std::string> dim_names = {});

  /// One dimension, over a group of the caller's own.
  static DeviceMesh from_group(ProcessGroup group, c10::DeviceType device_type, std::string dim_name = {});

  /// Two dimensions, over groups of the caller's own: `replicate` has the ranks with the same shard, `shard` the ranks
  /// that share the shards.
  static DeviceMesh from_groups(ProcessGroup replicate, ProcessGroup shard, c10::DeviceType device_type,
                                std::vector<std::string> dim_names = {"replicate", "shard"});

  c10::DeviceType device_type() const;
  int ndim() const;
  int size() const;         ///< All ranks of the mesh.
  int size(int dim) const;  ///< Along a dimension; negative ones count from the last.
  const std::vector<int>& shape() const;
  const std::vector<std::string>& dim_names() const;  ///< Empty if the dimensions have no names.
  /// All ranks, row by row. For meshes from groups of the caller's own, ranks outside this rank's row and column are
  /// -1.
  const std::vector<int>& ranks() const;
  std::vector<int> coordinate() const;  ///< Of this rank, one element per dimension.

  const ProcessGroup& get_group(int dim = 0) const;
  const ProcessGroup& get_group(std::string_view dim_name) const;
  int get_local_rank(int dim = 0) const;

  /// The named dimensions, through this rank, over the same groups.
  DeviceMesh operator[](std::string_view dim_name) const;
  DeviceMesh operator[](const std::vector<std::string>& dim_names) const;

  /// "DeviceMesh('cuda', 2x4, 'replicate' x 'shard')".
  std::string to_string() const;

  bool operator==(const DeviceMesh& other) const = default;  ///< The same mesh.

 private:
  struct Layout;
  explicit DeviceMesh(std::shared_ptr<const Layout> layout) : layout_(std::move(layout)) {}
  int checked_dim(int dim) const;
  int dim_of_name(std::string_view dim_name) const;
  std::shared_ptr<const Layout> layout_;
};

}  // namespace plimsoll::distributed
