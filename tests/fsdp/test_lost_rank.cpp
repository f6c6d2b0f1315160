#include <doctest/doctest.h>

#include "fsdp/join.h"
#include "fsdp/message_of.h"
#include "fsdp/small_net.h"

// A rank ends in the middle of a step: the others do not hang, and report the collective and the module that failed.

using namespace plimsoll;
using doctest::Contains;
using ranks::on_ranks;
using ranks::Rank;
using small::join;

namespace {

enum class When : std::uint8_t { kForward, kBackward };

/// The last rank ends in the second step, at the second layer. Returns the other ranks' errors. Those ranks then leave
/// the group, like a program that ends, so that ranks that wait for them fail too.
doctest::String lose_one(const Rank& rank, When when, const std::vector<int>& mesh_shape) {
  join(rank, std::chrono::seconds(20));
  small::Net net;
  small::shard(net, {.mesh = mesh_shape.size() == 1 ? small::cpu_mesh()
                                                    : distributed::DeviceMesh::init(at::kCPU, mesh_shape, {"r", "s"})});
  small::loss_of(net, small::batch()).backward();
  if (rank.rank == rank.size - 1) {
    auto& hooks = nn::require_hooks(*net->layers[1]);
    if (when == When::kForward) {
      hooks.register_forward_pre_hook([&](torch::nn::Module&, nn::Tensors&) { rank.die(); }, {.prepend = true});
    } else {
      hooks.register_forward_hook([&](torch::nn::Module&, nn::Tensors&, nn::Tensors& results) {
        results[0].register_hook([&](const at::Tensor&) { rank.die(); });
      });
    }
  }
  const auto message = small::message_of([&] { small::loss_of(net, small::batch()).backward(); });
  distributed::destroy_process_group();
  return message;
}

void others_are_told(int size, When when, const char* collective) {
  on_ranks(size, [when, collective](const Rank& rank) {
    const auto message = lose_one(rank, when, {rank.size});
    CHECK(message == Contains(collective));
    CHECK(message == Contains("layer"));
    CHECK(message == Contains("failed:"));
  });
}

}  // namespace

TEST_CASE("a rank lost in forward: the others report which module's all-gather failed") {
  others_are_told(2, When::kForward, "all_gather_single for layer1 on rank 0 of the group of ranks 0, 1");
  others_are_told(4, When::kForward, "all_gather_single for layer");
}

TEST_CASE("a rank lost in backward: the others report which module's collective failed") {
  others_are_told(2, When::kBackward, "on rank 0 of the group of ranks 0, 1");
  others_are_told(4, When::kBackward, "of the group of ranks 0 to 3");
}

TEST_CASE("a rank lost under HSDP: ranks that wait for it report it, and no rank hangs") {
  on_ranks(4, [](const Rank& rank) {
    const auto message = lose_one(rank, When::kBackward, {2, 2});
    CHECK(message == Contains("failed:"));
    CHECK(message == Contains(" for layer"));
  });
}

TEST_CASE("a missing rank is waited for no longer than the timeout") {
  on_ranks(2, [](const Rank& rank) {
    distributed::init_process_group({.backend = "gloo",
                                     .store = rank.store(),
                                     .rank = rank.rank,
                                     .world_size = rank.size,
                                     .timeout = std::chrono::milliseconds(700)});
    small::Net net;
    small::shard(net);
    if (rank.rank == 0) {
      CHECK(small::message_of([&] { net(small::batch()); }) == Contains("all_gather_single"));
      rank.store()->set("reported", "");
    } else {
      rank.store()->wait({"reported"}, std::chrono::seconds(30));
    }
  });
}
