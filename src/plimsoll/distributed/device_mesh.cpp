#include "plimsoll/distributed/device_mesh.h"

#include <ATen/Context.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <numeric>
#include <unordered_set>

#include "plimsoll/distributed/rendezvous.h"

// Mirrors init_device_mesh and DeviceMesh of torch/distributed/device_mesh.py (torch 2.13).

namespace plimsoll::distributed {
namespace {

bool is_fake(const ProcessGroup& group) {
  return group->hasBackends() && group->getDefaultBackend()->getBackendName() == "fake";
}

// Makes LOCAL_RANK, or the rank modulo the number of devices, the current device, unless the process has used one.
// Does nothing for the CPU, for a "fake" default group, and without a device. Mirrors
// DeviceMesh._setup_world_group_and_device (torch 2.13), without its warning if LOCAL_RANK is missing.
void choose_local_device(c10::DeviceType device_type) {
  if (device_type != c10::DeviceType::CUDA || !at::globalContext().hasCUDA() || is_fake(default_group())) return;
  const c10::impl::VirtualGuardImpl guard(device_type);
  const int devices = guard.deviceCount();
  for (int device = 0; device < devices; ++device) {
    if (at::detail::getCUDAHooks().hasPrimaryContext(static_cast<c10::DeviceIndex>(device))) return;
  }
  const auto local_rank = number_of_environment("LOCAL_RANK");
  TORCH_CHECK_VALUE(!local_rank || (*local_rank >= 0 && *local_rank < devices), "DeviceMesh: LOCAL_RANK is ",
                    local_rank.value_or(0), ", but this host has ", devices,
                    " devices. Start at most one rank for each device, or choose the device before the mesh is made.");
  const int world_size = get_world_size();
  TORCH_CHECK_VALUE(
      local_rank || world_size <= devices || world_size % devices == 0, "DeviceMesh: cannot choose one of ", devices,
      " devices for this rank: LOCAL_RANK is not set, and ", world_size,
      " ranks do not fill hosts like this one. Set LOCAL_RANK (torchrun does), or choose the device before "
      "the mesh is made.");
  const int chosen = local_rank.value_or(get_rank() % devices);
  guard.setDevice(c10::Device(device_type, static_cast<c10::DeviceIndex>(chosen)));
}

std::string joined(const std::vector<int>& shape) { return c10::str(c10::Join("x", shape)); }

std::int64_t product(const std::vector<int>& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

void check_shape(const std::vector<int>& shape, const std::vector<std::string>& dim_names) {
  TORCH_CHECK_VALUE(!shape.empty() && std::ranges::all_of(shape, [](int size) { return size > 0; }),
                    "DeviceMesh: the shape must have one or more positive sizes, but is [", joined(shape), "].");
  TORCH_CHECK_VALUE(dim_names.empty() || dim_names.size() == shape.size(), "DeviceMesh: there are ", dim_names.size(),
                    " names for ", shape.size(), " dimensions. Give one for each, or none.");
  const std::unordered_set<std::string> distinct(dim_names.begin(), dim_names.end());
  TORCH_CHECK_VALUE(distinct.size() == dim_names.size() && !distinct.contains(""),
                    "DeviceMesh: the names of dimensions must be distinct and not empty, but are '",
                    c10::Join("', '", dim_names), "'.");
}

// This rank's coordinate, row by row: the last dimension changes fastest.
std::vector<int> coordinate_at(std::int64_t index, const std::vector<int>& shape) {
  std::vector<int> coordinate(shape.size());
  for (std::size_t dim = shape.size(); dim-- > 0;) {
    coordinate[dim] = static_cast<int>(index % shape[dim]);
    index /= shape[dim];
  }
  return coordinate;
}

std::int64_t index_at(const std::vector<int>& coordinate, const std::vector<int>& shape) {
  std::int64_t index = 0;
  for (std::size_t dim = 0; dim < shape.size(); ++dim) index = index * shape[dim] + coordinate[dim];
  return index;
}

// Ranks that differ from this rank's coordinate only in the given dimensions, row by row.
std::vector<int> ranks_along(const std::vector<int>& dims, const std::vector<int>& shape, std::vector<int> coordinate,
                             const std::vector<int>& ranks) {
  std::vector<int> sizes;
  for (const int dim : dims) sizes.push_back(shape[dim]);
  std::vector<int> along;
  for (std::int64_t i = 0; i < product(sizes); ++i) {
    const auto place = coordinate_at(i, sizes);
    for (std::size_t d = 0; d < dims.size(); ++d) coordinate[dims[d]] = place[d];
    along.push_back(ranks[index_at(coordinate, shape)]);
  }
  return along;
}

// For a group of the caller's own, possibly only this rank is known.
std::vector<int> ranks_or_unknown(const ProcessGroup& group) {
  if (auto ranks = known_ranks(group)) return *std::move(ranks);
  std::vector<int> ranks(group->getSize(), -1);
  ranks[group->getRank()] = get_rank();
  return ranks;
}

}  // namespace

struct DeviceMesh::Layout {
  c10::DeviceType device_type;
  std::vector<int> shape;
  std::vector<std::string> dim_names;
  std::vector<int> ranks;
  std::vector<int> coordinate;
  std::vector<ProcessGroup> groups;
};

DeviceMesh DeviceMesh::init(c10::DeviceType device_type, std::vector<int> shape, std::vector<std::string> dim_names) {
  check_shape(shape, dim_names);
  const int world_size = get_world_size();
  TORCH_CHECK_VALUE(product(shape) == world_size, "DeviceMesh::init: a mesh of ", joined(shape), " has ",
                    product(shape), " ranks, but the default group has ", world_size,
                    ". Make the product of the shape the world size, or list the ranks with DeviceMesh(device_type, "
                    "ranks, shape).");
  std::vector<int> ranks(world_size);
  std::iota(ranks.begin(), ranks.end(), 0);
  return DeviceMesh(device_type, std::move(ranks), std::move(shape), std::move(dim_names));
}

DeviceMesh::DeviceMesh(c10::DeviceType device_type, std::vector<int> ranks, std::vector<int> shape,
                       std::vector<std::string> dim_names) {
  check_shape(shape, dim_names);
  TORCH_CHECK_VALUE(product(shape) == static_cast<std::int64_t>(ranks.size()), "DeviceMesh: a mesh of ", joined(shape),
                    " has ", product(shape), " ranks, but ", ranks.size(), " are given.");
  const int world_size = get_world_size();
  const auto [lowest, highest] = std::ranges::minmax(ranks);
  TORCH_CHECK_VALUE(lowest >= 0 && highest < world_size, "DeviceMesh: the ranks must be from 0 to ", world_size - 1,
                    " in a world of ", world_size, ", but are ", describe_ranks(ranks), ".");
  TORCH_CHECK_VALUE(std::unordered_set<int>(ranks.begin(), ranks.end()).size() == ranks.size(),
                    "DeviceMesh: the ranks must be distinct, but are ", describe_ranks(ranks), ".");
  const auto here = std::ranges::find(ranks, get_rank());
  TORCH_CHECK_VALUE(here != ranks.end(), "DeviceMesh: this is rank ", get_rank(), ", which is not among ",
                    describe_ranks(ranks), ". Only members make the mesh.");
  choose_local_device(device_type);

  auto layout = std::make_shared<Layout>();
  layout->device_type = device_type;
  layout->coordinate = coordinate_at(here - ranks.begin(), shape);
  for (int dim = 0; dim < static_cast<int>(shape.size()); ++dim) {
    if (shape[dim] == world_size) {
      layout->groups.push_back(default_group());
      continue;
    }
    const std::string name = dim_names.empty() ? c10::str("dim_", dim) : dim_names[dim];
    layout->groups.push_back(
        new_group(ranks_along({dim}, shape, layout->coordinate, ranks), {.description = "mesh_" + name}));
  }
  layout->shape = std::move(shape);
  layout->dim_names = std::move(dim_names);
  layout->ranks = std::move(ranks);
  layout_ = std::move(layout);
}

DeviceMesh DeviceMesh::from_group(ProcessGroup group, c10::DeviceType device_type, std::string dim_name) {
  TORCH_CHECK_VALUE(group, "DeviceMesh::from_group: the group is null.");
  auto layout = std::make_shared<Layout>();
  layout->device_type = device_type;
  layout->shape = {group->getSize()};
  if (!dim_name.empty()) layout->dim_names = {std::move(dim_name)};
  layout->ranks = ranks_or_unknown(group);
  layout->coordinate = {group->getRank()};
  layout->groups = {std::move(group)};
  return DeviceMesh(std::shared_ptr<const Layout>(std::move(layout)));
}

DeviceMesh DeviceMesh::from_groups(ProcessGroup replicate, ProcessGroup shard, c10::DeviceType device_type,
                                   std::vector<std::string> dim_names) {
  TORCH_CHECK_VALUE(replicate && shard, "DeviceMesh::from_groups: the ", replicate ? "shard" : "replicate",
                    " group is null.");
  auto layout = std::make_shared<Layout>();
  layout->device_type = device_type;
  layout->shape = {replicate->getSize(), shard->getSize()};
  check_shape(layout->shape, dim_names);
  layout->dim_names = std::move(dim_names);
  layout->coordinate = {replicate->getRank(), shard->getRank()};
  layout->ranks.assign(product(layout->shape), -1);
  const auto column = ranks_or_unknown(replicate);
  const auto row = ranks_or_unknown(shard);
  for (int i = 0; i < layout->shape[0]; ++i) {
    layout->ranks[index_at({i, layout->coordinate[1]}, layout->shape)] = column[i];
  }
  for (int i = 0; i < layout->shape[1]; ++i) {
    layout->ranks[index_at({layout->coordinate[0], i}, layout->shape)] = row[i];
  }
  layout->groups = {std::move(replicate), std::move(shard)};
  return DeviceMesh(std::shared_ptr<const Layout>(std::move(layout)));
}

c10::DeviceType DeviceMesh::device_type() const { return layout_->device_type; }
int DeviceMesh::ndim() const { return static_cast<int>(layout_->shape.size()); }
int DeviceMesh::size() const { return static_cast<int>(product(layout_->shape)); }
int DeviceMesh::size(int dim) const { return layout_->shape[checked_dim(dim)]; }
const std::vector<int>& DeviceMesh::shape() const { return layout_->shape; }
const std::vector<std::string>& DeviceMesh::dim_names() const { return layout_->dim_names; }
const std::vector<int>& DeviceMesh::ranks() const { return layout_->ranks; }
std::vector<int> DeviceMesh::coordinate() const { return layout_->coordinate; }
const ProcessGroup& DeviceMesh::get_group(int dim) const { return layout_->groups[checked_dim(dim)]; }
const ProcessGroup& DeviceMesh::get_group(std::string_view dim_name) const {
  return layout_->groups[dim_of_name(dim_name)];
}
int DeviceMesh::get_local_rank(int dim) const { return get_group(dim)->getRank(); }

int DeviceMesh::checked_dim(int dim) const {
  TORCH_CHECK_INDEX(dim >= -ndim() && dim < ndim(), to_string(), " has no dimension ", dim, ": expected from ", -ndim(),
                    " to ", ndim() - 1, ".");
  return dim < 0 ? dim + ndim() : dim;
}

int DeviceMesh::dim_of_name(std::string_view dim_name) const {
  const auto& names = layout_->dim_names;
  const auto found = std::ranges::find(names, dim_name);
  TORCH_CHECK_VALUE(found != names.end(), to_string(), " has no dimension '", dim_name, "'",
                    names.empty() ? ": it was made without names." : ".");
  return static_cast<int>(found - names.begin());
}

DeviceMesh DeviceMesh::operator[](std::string_view dim_name) const {
  return (*this)[std::vector<std::string>{std::string(dim_name)}];
}

DeviceMesh DeviceMesh::operator[](const std::vector<std::string>& dim_names) const {
  if (dim_names == layout_->dim_names && !dim_names.empty()) return *this;
  auto layout = std::make_shared<Layout>();
  std::vector<int> dims;
  for (const auto& name : dim_names) {
    const int dim = dim_of_name(name);
    TORCH_CHECK_VALUE(dims.empty() || dim >= dims.back(), "The dimensions of ", to_string(),
                      " can be taken in their order only, but '", name, "' is before the previous one.");
    dims.push_back(dim);
    layout->shape.push_back(layout_->shape[dim]);
    layout->coordinate.push_back(layout_->coordinate[dim]);
    layout->groups.push_back(layout_->groups[dim]);
  }
  check_shape(layout->shape, dim_names);
  layout->device_type = layout_->device_type;
  layout->dim_names = dim_names;
  layout->ranks = ranks_along(dims, layout_->shape, layout_->coordinate, layout_->ranks);
  return DeviceMesh(std::shared_ptr<const Layout>(std::move(layout)));
}

std::string DeviceMesh::to_string() const {
  const auto device = c10::DeviceTypeName(device_type(), /*lower_case=*/true);
  std::string names;
  for (const auto& name : dim_names()) names += (names.empty() ? ", '" : " x '") + name + "'";
  return c10::str("DeviceMesh('", device, "', ", joined(shape()), names, ")");
}

}  // namespace plimsoll::distributed
