#include <ATen/Functions.h>
#include <doctest/doctest.h>

#include <cstdlib>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "distributed/ranks.h"
#include "nn/error_text.h"
#include "plimsoll/distributed/collectives.h"

namespace test_process_group {

using namespace plimsoll::distributed;
using c10d::ReduceOp;
using ranks::on_ranks;
using ranks::Rank;

namespace {

/// A default group for a scope, in a process without one.
struct Default {
  explicit Default(InitOptions options) : group(init_process_group(std::move(options))) {}
  ~Default() { destroy_process_group(); }
  ProcessGroup group;
};

/// The environment variables of a launcher, for a scope.
struct Environment {
  Environment(std::initializer_list<std::pair<const char*, const char*>> variables) {
    for (const auto& [name, value] : variables) {
      setenv(name, value, 1);
    }
  }
  ~Environment() {
    for (const char* name : {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}) {
      unsetenv(name);
    }
  }
};

std::string refusal(InitOptions options) {
  return error_text([&] { init_process_group(std::move(options)); });
}

InitOptions fake(int rank, int world_size) { return {.backend = "fake", .rank = rank, .world_size = world_size}; }

ProcessGroup join(const Rank& rank) {
  return init_process_group({.backend = "gloo", .store = rank.store(), .rank = rank.rank, .world_size = rank.size});
}

std::string free_port() {
  const auto store = c10d::TCPStore("localhost", {.port = 0, .isServer = true, .waitWorkers = false});
  return std::to_string(store.getPort());
}

}  // namespace

TEST_CASE("a process without a launcher gets an error that says what to set") {
  CHECK(refusal({.backend = "fake"}) ==
        "init_process_group: missing world_size. Set InitOptions::world_size, or start the program with torchrun, "
        "which sets WORLD_SIZE.");
  CHECK(refusal({.backend = "fake", .world_size = 2}) ==
        "init_process_group: missing rank. Set InitOptions::rank, or start the program with torchrun, which sets "
        "RANK.");
  CHECK(refusal({.backend = "gloo", .rank = 0, .world_size = 2})
            .starts_with("init_process_group: the ranks have no address to connect to: MASTER_ADDR is not set."));
  const Environment half({{"MASTER_ADDR", "localhost"}});
  CHECK(refusal({.backend = "gloo", .rank = 0, .world_size = 2})
            .starts_with("init_process_group: the ranks have no address to connect to: MASTER_PORT is not set. Start "
                         "the program with torchrun, or set MASTER_ADDR and MASTER_PORT"));
}

TEST_CASE("invalid options and variables are refused") {
  CHECK(refusal({.backend = "mpi"}) ==
        "Unknown backend 'mpi': expected \"gloo\", \"nccl\" or \"fake\". A c10d::ProcessGroup with another backend, "
        "made by the caller, can be passed to set_default_group.");
  CHECK(refusal(fake(0, 0)) == "init_process_group: the world size must be positive, but is 0.");
  CHECK(refusal(fake(4, 4)) == "init_process_group: the rank must be from 0 to 3 in a world of 4, but is 4.");
  CHECK(refusal(fake(-1, 4)) == "init_process_group: the rank must be from 0 to 3 in a world of 4, but is -1.");
  CHECK(refusal({.backend = "fake", .rank = 0, .world_size = 1, .timeout = std::chrono::milliseconds(0)}) ==
        "init_process_group: the timeout must be positive, but is 0 ms.");
  const Environment wrong({{"RANK", "two"}, {"MASTER_ADDR", "localhost"}, {"MASTER_PORT", "70000"}});
  CHECK(refusal({.backend = "fake", .world_size = 4}) ==
        "The environment variable RANK must be a whole number, but is 'two'.");
  CHECK(refusal({.backend = "gloo", .rank = 0, .world_size = 1}) ==
        "The environment variable MASTER_PORT must be from 0 to 65535, but is 70000.");
  CHECK_FALSE(is_initialized());
}

TEST_CASE("there is at most one default group, and none at first") {
  CHECK(error_text([] { default_group(); }) ==
        "There is no default process group. Call init_process_group first, or set_default_group with a group of your "
        "own.");
  destroy_process_group();  // Does nothing.
  {
    const Default group(fake(3, 8));
    CHECK(is_initialized());
    CHECK(default_group() == group.group);
    CHECK(get_rank() == 3);
    CHECK(get_world_size() == 8);
    CHECK(group_ranks(group.group) == std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7});
    CHECK(refusal(fake(0, 2)) ==
          "init_process_group: there is already a default group of 8 ranks. Call destroy_process_group first.");
    CHECK(error_text([&] { set_default_group(group.group); }) ==
          "set_default_group: there is already a default group of 8 ranks. Call destroy_process_group first.");
  }
  CHECK_FALSE(is_initialized());
  const Default again(fake(0, 2));
  CHECK(get_world_size() == 2);
}

TEST_CASE("a launcher's variables make the group, and rank 0 hosts the store") {
  const int number = std::stoi(free_port());
  on_ranks(2, [number](const Rank& rank) {
    const Environment launcher({{"RANK", std::to_string(rank.rank).c_str()},
                                {"WORLD_SIZE", "2"},
                                {"MASTER_ADDR", "localhost"},
                                {"MASTER_PORT", std::to_string(number).c_str()}});
    const auto group = init_process_group({.backend = "gloo"});
    const auto tensor = at::ones({1});
    all_reduce(tensor, group, ReduceOp::SUM);
    CHECK(tensor.item<float>() == 2);
    barrier(group);
    if (rank.rank == 0) {
      rank.store()->wait({"the other has ended"});
    }
    destroy_process_group();
    rank.store()->set("the other has ended", std::vector<std::uint8_t>{1});
  });
}

TEST_CASE("if an agent hosts the store, rank 0 does not") {
  const c10d::TCPStore agent("localhost", {.port = 0, .isServer = true, .waitWorkers = false});
  const int port = agent.getPort();
  on_ranks(2, [port](const Rank& rank) {
    setenv("TORCHELASTIC_USE_AGENT_STORE", "True", 1);
    const Environment launcher({{"RANK", std::to_string(rank.rank).c_str()},
                                {"WORLD_SIZE", "2"},
                                {"MASTER_ADDR", "localhost"},
                                {"MASTER_PORT", std::to_string(port).c_str()}});
    const auto tensor = at::ones({1});
    all_reduce(tensor, init_process_group({.backend = "gloo"}), ReduceOp::SUM);
    CHECK(tensor.item<float>() == 2);
  });
}

TEST_CASE("ranks that do not connect in time get an error") {
  const std::string port = free_port();
  const Environment launcher({{"MASTER_ADDR", "localhost"}, {"MASTER_PORT", port.c_str()}});
  const auto text = refusal({.backend = "gloo", .rank = 0, .world_size = 2, .timeout = std::chrono::milliseconds(200)});
  CHECK(text.starts_with("init_process_group: rank 0 of 2 could not connect to the others at localhost:" + port +
                         " within 200 ms: "));
  CHECK_FALSE(is_initialized());
}

TEST_CASE("a gloo group makes a broken pipe an error, and keeps a program's own handler") {
  on_ranks(1, [](const Rank& rank) {
    join(rank);
    CHECK((signal(SIGPIPE, SIG_DFL) == SIG_IGN));
  });
  on_ranks(1, [](const Rank& rank) {
    const auto handler = [](int) {};
    signal(SIGPIPE, handler);
    join(rank);
    CHECK((signal(SIGPIPE, SIG_DFL) == +handler));
  });
}

TEST_CASE("subgroups need only their own ranks, in any order of other groups") {
  on_ranks(4, [](const Rank& rank) {
    join(rank);
    if (rank.rank == 3) {
      return;
    }
    // Rank 0 is in two groups, the others in one each.
    for (const int other : {2, 1}) {
      if (rank.rank != 0 && rank.rank != other) {
        continue;
      }
      const auto group = new_group({other, 0});
      CHECK(group_ranks(group) == std::vector<int>{0, other});
      CHECK(group->getRank() == (rank.rank == 0 ? 0 : 1));
      const auto tensor = at::full({2}, rank.rank + 1.0);
      all_reduce(tensor, group, ReduceOp::SUM);
      CHECK(tensor.equal(at::full({2}, other + 2.0)));
    }
  });
}

TEST_CASE("groups of the same ranks are separate") {
  on_ranks(2, [](const Rank& rank) {
    join(rank);
    const auto first = new_group({0, 1}, {.description = "first"});
    const auto second = new_group({0, 1}, {.timeout = std::chrono::seconds(5)});
    CHECK(first->getGroupName() != second->getGroupName());
    CHECK(first->getGroupDesc() == "first");
    const auto one = at::ones({1});
    const auto ten = at::full({1}, 10.0);
    const Work work = all_reduce(one, first, ReduceOp::SUM, true);
    all_reduce(ten, second, ReduceOp::SUM);
    wait(work, first, "all_reduce");
    CHECK(one.item<float>() == 2);
    CHECK(ten.item<float>() == 20);
  });
}

TEST_CASE("invalid ranks of a group are refused") {
  const Default group(fake(1, 4));
  CHECK(error_text([] { new_group({}); }) == "new_group: expected one or more distinct ranks, found [].");
  CHECK(error_text([] { new_group({1, 1}); }) == "new_group: expected one or more distinct ranks, found [1, 1].");
  CHECK(error_text([] { new_group({1, 4}); }) ==
        "new_group: the ranks must be from 0 to 3 in a world of 4, but are ranks 1, 4.");
  CHECK(error_text([] { new_group({0, 2, 3}); }) ==
        "new_group: this is rank 1, which is not among ranks 0, 2, 3. Only members call new_group.");
}

TEST_CASE("a group of the caller's own can be the default one, and makes subgroups if it has a store") {
  ProcessGroup own;
  {
    const Default made(fake(2, 4));
    own = made.group;
  }
  CHECK(error_text([] { set_default_group(nullptr); }) == "set_default_group: the group is null.");
  set_default_group(own);
  CHECK(default_group() == own);
  CHECK(group_ranks(new_group({0, 2})) == std::vector<int>{0, 2});
  const auto stranger = c10::make_intrusive<c10d::ProcessGroup>(nullptr, 0, 2);
  CHECK(error_text([&] { group_ranks(stranger); }) ==
        "group_ranks: the ranks of this group of 2 in the default group of 4 are unknown. Make the group with "
        "init_process_group or new_group.");
  destroy_process_group();
  set_default_group(stranger);
  CHECK(group_ranks(stranger) == std::vector<int>{0, 1});
  CHECK(error_text([] { new_group({0}); }) ==
        "new_group: the default group is the caller's own and has no store for its members. Make the subgroup too, and "
        "pass it to DeviceMesh::from_group.");
  destroy_process_group();
}

TEST_CASE("each device type may have a separate backend, in subgroups too") {
  init_process_group({.backend = "cpu:fake,cuda:fake", .store = {}, .rank = 3, .world_size = 8});
  CHECK(get_backend() == "cpu:fake,cuda:fake");
  const auto group = new_group({2, 3});
  CHECK(group->getDeviceTypes().size() == 2);
  destroy_process_group();

  CHECK(refusal({.backend = "cpu:fake,gloo"}) ==
        "The backend 'cpu:fake,gloo' has no device type before 'gloo': expected a form as \"cpu:gloo,cuda:nccl\".");
  CHECK(refusal({.backend = "tpu:fake"}) == "Unknown device type 'tpu' of a backend: expected \"cpu\" or \"cuda\".");
  CHECK(refusal({.backend = "cpu:nccl"}) == "The backend \"nccl\" does not take tensors of cpu.");
}

TEST_CASE("one process is a rank of sixteen thousand with the fake backend") {
  const Default group(fake(16383, 16384));
  const auto all = at::empty({2 * 16384});
  const auto mine = at::arange(2, at::kFloat);
  all_gather_single(all, mine, group.group);
  CHECK(all.view({16384, 2}).equal(mine.expand({16384, 2})));
  const auto part = at::empty({2});
  const Work work = reduce_scatter_single(part, at::arange(2 * 16384, at::kFloat), group.group, ReduceOp::AVG, true);
  wait(work, group.group, "reduce_scatter_single");
  CHECK(part.equal(at::arange(2 * 16383, 2 * 16384, at::kFloat)));
  all_reduce(part, group.group, ReduceOp::SUM);
  broadcast(part, group.group, 7);
  barrier(group.group);
  all_gather_single(at::empty({0}), at::empty({0}), group.group);
  CHECK(error_text([&] { all_gather_single(all, part.slice(0, 0, 1), group.group); }) ==
        "all_gather_single on rank 16383 of the group of ranks 0 to 16383 (131072 bytes) failed: the output must have "
        "16384 elements, 16384 times the input's 1, but has 32768");
}

}  // namespace test_process_group
