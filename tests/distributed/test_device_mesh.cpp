#include <ATen/Functions.h>
#include <doctest/doctest.h>

#include <numeric>

#include "distributed/ranks.h"
#include "nn/error_text.h"
#include "plimsoll/distributed/collectives.h"
#include "plimsoll/distributed/device_mesh.h"

using namespace plimsoll::distributed;
using c10d::ReduceOp;
using ranks::on_ranks;
using ranks::Rank;
using Ints = std::vector<int>;
using Names = std::vector<std::string>;

namespace {

/// A fake default group for a scope.
struct FakeWorld {
  FakeWorld(int rank, int world_size) {
    init_process_group({.backend = "fake", .rank = rank, .world_size = world_size});
  }
  ~FakeWorld() { destroy_process_group(); }
};

std::string refusal(Ints shape, Names names = {}) {
  return error_text([&] { DeviceMesh::init(at::kCPU, shape, names); });
}

double sum_over(const ProcessGroup& group) {
  const auto tensor = at::full({1}, static_cast<double>(get_rank()));
  all_reduce(tensor, group, ReduceOp::SUM);
  return tensor.item<float>();
}

}  // namespace

TEST_CASE("a mesh of one dimension over the world has the default group") {
  const FakeWorld world(5, 8);
  const auto mesh = DeviceMesh::init(at::kCPU, {8});
  CHECK(mesh.ndim() == 1);
  CHECK(mesh.size() == 8);
  CHECK(mesh.size(0) == 8);
  CHECK(mesh.shape() == Ints{8});
  CHECK(mesh.dim_names().empty());
  CHECK(mesh.ranks() == Ints{0, 1, 2, 3, 4, 5, 6, 7});
  CHECK(mesh.coordinate() == Ints{5});
  CHECK(mesh.get_local_rank() == 5);
  CHECK(mesh.get_group() == default_group());
  CHECK(mesh.device_type() == at::kCPU);
  CHECK(mesh.to_string() == "DeviceMesh('cpu', 8)");
}

TEST_CASE("a mesh of two dimensions has a group along each, by number and by name") {
  const FakeWorld world(6, 8);
  const auto mesh = DeviceMesh::init(at::kCUDA, {2, 4}, {"replicate", "shard"});
  CHECK(mesh.ndim() == 2);
  CHECK(mesh.size() == 8);
  CHECK(mesh.size(0) == 2);
  CHECK(mesh.size(-1) == 4);
  CHECK(mesh.coordinate() == Ints{1, 2});
  CHECK(group_ranks(mesh.get_group(0)) == Ints{2, 6});
  CHECK(group_ranks(mesh.get_group("shard")) == Ints{4, 5, 6, 7});
  CHECK(mesh.get_group(-1) == mesh.get_group("shard"));
  CHECK(mesh.get_local_rank(0) == 1);
  CHECK(mesh.get_local_rank(1) == 2);
  CHECK(mesh.get_group("shard")->getGroupDesc() == "mesh_shard");
  CHECK(mesh.to_string() == "DeviceMesh('cuda', 2x4, 'replicate' x 'shard')");
}

TEST_CASE("submeshes have the same groups, in the order of the mesh") {
  const FakeWorld world(9, 24);
  const auto mesh = DeviceMesh::init(at::kCPU, {2, 3, 4}, {"a", "b", "c"});
  CHECK(mesh.coordinate() == Ints{0, 2, 1});
  const auto b = mesh["b"];
  CHECK(b.ranks() == Ints{1, 5, 9});
  CHECK(b.get_group() == mesh.get_group("b"));
  CHECK(b.coordinate() == Ints{2});
  CHECK(b.dim_names() == Names{"b"});
  const auto ac = mesh[Names{"a", "c"}];
  CHECK(ac.shape() == Ints{2, 4});
  CHECK(ac.ranks() == Ints{8, 9, 10, 11, 20, 21, 22, 23});
  CHECK(ac.coordinate() == Ints{0, 1});
  CHECK(ac.get_group("a") == mesh.get_group("a"));
  CHECK(error_text([&] { mesh[Names{"c", "a"}]; }) ==
        "The dimensions of DeviceMesh('cpu', 2x3x4, 'a' x 'b' x 'c') can be taken in their order only, but 'a' is "
        "before the previous one.");
  CHECK(mesh[Names{"a", "b", "c"}] == mesh);
  CHECK(b != mesh);
}

TEST_CASE("a dimension as large as the world has the default group, others have separate groups") {
  const FakeWorld world(2, 4);
  const auto mesh = DeviceMesh::init(at::kCPU, {1, 4});
  CHECK(mesh.get_group(1) == default_group());
  CHECK(group_ranks(mesh.get_group(0)) == Ints{2});
}

TEST_CASE("a mesh of sixteen thousand ranks is made at once") {
  const FakeWorld world(16000, 16384);
  const auto mesh = DeviceMesh::init(at::kCUDA, {64, 256}, {"replicate", "shard"});
  CHECK(mesh.coordinate() == Ints{62, 128});
  CHECK(mesh.get_group("shard")->getSize() == 256);
  CHECK(group_ranks(mesh.get_group("replicate"))[63] == 63 * 256 + 128);
}

TEST_CASE("a mesh that does not fit is refused") {
  const FakeWorld world(1, 4);
  CHECK(refusal({2, 4}) ==
        "DeviceMesh::init: a mesh of 2x4 has 8 ranks, but the default group has 4. Make the product of the shape the "
        "world size, or list the ranks with DeviceMesh(device_type, ranks, shape).");
  CHECK(refusal({}) == "DeviceMesh: the shape must have one or more positive sizes, but is [].");
  CHECK(refusal({4, 0}) == "DeviceMesh: the shape must have one or more positive sizes, but is [4x0].");
  CHECK(refusal({2, 2}, {"a"}) == "DeviceMesh: there are 1 names for 2 dimensions. Give one for each, or none.");
  CHECK(refusal({2, 2}, {"a", "a"}) ==
        "DeviceMesh: the names of dimensions must be distinct and not empty, but are 'a', 'a'.");
  CHECK(refusal({4}, {""}) == "DeviceMesh: the names of dimensions must be distinct and not empty, but are ''.");
  CHECK(error_text([] { DeviceMesh(at::kCPU, {0, 1, 2}, {2}); }) ==
        "DeviceMesh: a mesh of 2 has 2 ranks, but 3 are given.");
  CHECK(error_text([] { DeviceMesh(at::kCPU, {1, 4}, {2}); }) ==
        "DeviceMesh: the ranks must be from 0 to 3 in a world of 4, but are ranks 1, 4.");
  CHECK(error_text([] { DeviceMesh(at::kCPU, {1, 1}, {2}); }) ==
        "DeviceMesh: the ranks must be distinct, but are ranks 1, 1.");
  CHECK(error_text([] { DeviceMesh(at::kCPU, {2, 3}, {2}); }) ==
        "DeviceMesh: this is rank 1, which is not among ranks 2, 3. Only members make the mesh.");
}

TEST_CASE("a missing dimension is refused") {
  const FakeWorld world(1, 4);
  const auto named = DeviceMesh::init(at::kCPU, {2, 2}, {"a", "b"});
  CHECK(error_text([&] { named.size(2); }) ==
        "DeviceMesh('cpu', 2x2, 'a' x 'b') has no dimension 2: expected from -2 to 1.");
  CHECK(error_text([&] { named.get_group(-3); }) ==
        "DeviceMesh('cpu', 2x2, 'a' x 'b') has no dimension -3: expected from -2 to 1.");
  CHECK(error_text([&] { named.get_group("c"); }) == "DeviceMesh('cpu', 2x2, 'a' x 'b') has no dimension 'c'.");
  CHECK(error_text([&] { named[Names{"b", "b"}]; }) ==
        "DeviceMesh: the names of dimensions must be distinct and not empty, but are 'b', 'b'.");
  CHECK(error_text([&] { DeviceMesh::init(at::kCPU, {4})["a"]; }) ==
        "DeviceMesh('cpu', 4) has no dimension 'a': it was made without names.");
}

TEST_CASE("a mesh without a default group is an error that says how to make one") {
  CHECK(refusal({1}).starts_with("There is no default process group. Call init_process_group first"));
}

TEST_CASE("groups of the caller's own make meshes, with the ranks that are known") {
  const FakeWorld world(5, 8);
  const auto row = new_group({4, 5, 6, 7});
  const auto column = new_group({1, 5});
  const auto one = DeviceMesh::from_group(row, at::kCPU, "shard");
  CHECK(one.ranks() == Ints{4, 5, 6, 7});
  CHECK(one.coordinate() == Ints{1});
  CHECK(one.get_group("shard") == row);
  const auto two = DeviceMesh::from_groups(column, row, at::kCPU);
  CHECK(two.shape() == Ints{2, 4});
  CHECK(two.ranks() == Ints{-1, 1, -1, -1, 4, 5, 6, 7});
  CHECK(two.coordinate() == Ints{1, 1});
  CHECK(two["replicate"].ranks() == Ints{1, 5});
  const auto stranger = c10::make_intrusive<c10d::ProcessGroup>(nullptr, 2, 4);
  CHECK(DeviceMesh::from_group(stranger, at::kCPU).ranks() == Ints{-1, -1, 5, -1});
  CHECK(error_text([] { DeviceMesh::from_group(nullptr, at::kCPU); }) == "DeviceMesh::from_group: the group is null.");
  CHECK(error_text([&] { DeviceMesh::from_groups(column, nullptr, at::kCPU); }) ==
        "DeviceMesh::from_groups: the shard group is null.");
  CHECK(error_text([&] { DeviceMesh::from_groups(nullptr, row, at::kCPU); }) ==
        "DeviceMesh::from_groups: the replicate group is null.");
}

TEST_CASE("collectives run along the dimensions of real ranks") {
  on_ranks(4, [](const Rank& rank) {
    init_process_group({.backend = "gloo", .store = rank.store(), .rank = rank.rank, .world_size = rank.size});
    const auto mesh = DeviceMesh::init(at::kCPU, {2, 2}, {"replicate", "shard"});
    CHECK(sum_over(mesh.get_group("shard")) == (rank.rank < 2 ? 1 : 5));
    CHECK(sum_over(mesh.get_group("replicate")) == (rank.rank % 2 == 0 ? 2 : 4));
    if (rank.rank != 1) {  // Ranks outside do not take part.
      const DeviceMesh some(at::kCPU, {3, 0, 2}, {3});
      CHECK(some.ranks() == Ints{3, 0, 2});
      CHECK(group_ranks(some.get_group()) == Ints{0, 2, 3});
      CHECK(sum_over(some.get_group()) == 5);
    }
    barrier(default_group());
  });
}
