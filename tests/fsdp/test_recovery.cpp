#include <doctest/doctest.h>

#include "fsdp/join.h"
#include "fsdp/message_of.h"
#include "fsdp/small_net.h"
#include "plimsoll/nn/optim/sgd.h"

// An exception in the middle of an iteration, on all ranks; then reset_iter_state, and training continues as without
// that batch.

using namespace plimsoll;
using ranks::on_ranks;
using ranks::Rank;
using small::join;

namespace {

enum class Fault : std::uint8_t { kNone, kForward, kBackward };

struct Plan {
  int layer = 1;  ///< The layer that fails.
  bool hsdp = false;
  bool prefetch = false;    ///< All-gathers of later modules are pending at the failure.
  bool grouped = false;     ///< The first and the last layer communicate as one group.
  bool accumulate = false;  ///< The first batch of the step is not reduced when the second one fails.
  fsdp::ReshardAfterForward reshard = {};
  fsdp::MixedPrecisionPolicy precision = {};
};

fsdp::FSDPModule shard(small::Net& net, const Plan& plan) {
  fsdp::FullyShardOptions options{.reshard_after_forward = plan.reshard, .mp_policy = plan.precision};
  options.mesh =
      plan.hsdp ? distributed::DeviceMesh::init(at::kCPU, {2, 2}, {"replicate", "shard"}) : small::cpu_mesh();
  if (plan.grouped) {
    fsdp::fully_shard(std::vector<fsdp::ModuleRef>{net->layers[0], net->layers[2]}, options);
    fsdp::fully_shard(net->layers[1], options);
    return fsdp::fully_shard(net, options);
  }
  auto module = small::shard(net, options);
  if (plan.prefetch) {
    const std::vector<fsdp::FSDPModule> layers(net->layers.begin(), net->layers.end());
    module.set_modules_to_forward_prefetch({layers[0], layers[1], layers[2]});
    module.set_modules_to_backward_prefetch({layers[2], layers[1], layers[0]});
  }
  return module;
}

void iterate(small::Net& net, fsdp::FSDPModule& module, nn::SGD& optimizer, const Plan& plan, int seed) {
  if (plan.accumulate) {
    module.set_requires_gradient_sync(false);
    small::loss_of(net, small::batch(seed + 50)).backward();
    module.set_requires_gradient_sync(true);
  }
  small::loss_of(net, small::batch(seed)).backward();
  optimizer.step();
  optimizer.zero_grad();
}

/// Five iterations; the third fails, is reset and skipped.
void train(small::Net& net, const Plan& plan, Fault fault) {
  auto module = shard(net, plan);
  nn::SGD optimizer(net->parameters(), {.lr = 0.1, .momentum = 0.9});
  for (int i = 0; i < 5; ++i) {
    if (i != 2) {
      iterate(net, module, optimizer, plan, 10 * i + distributed::get_rank());
      continue;
    }
    if (fault == Fault::kNone) continue;
    auto& layer = *net->layers[plan.layer];
    (fault == Fault::kForward ? layer.fails_in_forward : layer.fails_in_backward) = true;
    const auto message = small::message_of([&] { iterate(net, module, optimizer, plan, 7); });
    CHECK(message == doctest::Contains("a fault in"));
    layer.fails_in_forward = layer.fails_in_backward = false;
    module.reset_iter_state();
    optimizer.zero_grad();
  }
}

void same_as_without(const Plan& plan, int size) {
  on_ranks(size, [plan](const Rank& rank) {
    join(rank);
    small::Net without;
    train(without, plan, Fault::kNone);
    for (const Fault fault : {Fault::kForward, Fault::kBackward}) {
      for (const int layer : {0, 1, 2}) {
        Plan here = plan;
        here.layer = layer;
        small::Net net;
        train(net, here, fault);
        CHECK(small::same_parameters(*net, *without, 1, 0));
      }
    }
  });
}

}  // namespace

TEST_CASE("after an exception and a reset, training continues as without that batch") {
  same_as_without({}, 2);
  same_as_without({.reshard = false}, 2);
}

TEST_CASE("a backward that is not reduced yet is lost with the failed batch") {
  same_as_without({.accumulate = true}, 2);
  same_as_without({.accumulate = true, .precision = {.param_dtype = at::kBFloat16, .reduce_dtype = at::kFloat}}, 2);
}

TEST_CASE("recovery works with pending all-gathers of other modules") { same_as_without({.prefetch = true}, 2); }

TEST_CASE("recovery works with modules that communicate as one group") {
  same_as_without({.grouped = true}, 2);
  same_as_without({.grouped = true, .reshard = false}, 2);
}

TEST_CASE("recovery works with replicas, and with parameters sharded on fewer ranks after forward") {
  same_as_without({.hsdp = true}, 4);
  same_as_without({.hsdp = true, .accumulate = true}, 4);
  same_as_without({.reshard = 2}, 4);
}

TEST_CASE("a postponed all-reduce is lost with the failed batch") {
  on_ranks(4, [](const Rank& rank) {
    join(rank);
    const Plan plan{.hsdp = true};
    small::Net nets[2];
    for (const bool fails : {false, true}) {
      small::Net& net = nets[fails];
      auto module = shard(net, plan);
      if (fails) {
        module.set_requires_all_reduce(false);
        small::loss_of(net, small::batch(5)).backward();
        module.set_requires_all_reduce(true);
        net->layers[1]->fails_in_forward = true;
        CHECK_THROWS(small::loss_of(net, small::batch(6)));
        net->layers[1]->fails_in_forward = false;
        module.reset_iter_state();
        small::zero_grad(*net);
      }
      small::loss_of(net, small::batch(rank.rank)).backward();
    }
    CHECK(small::same_gradients(*nets[1], *nets[0], 1, 0));
  });
}

TEST_CASE("a reset does nothing before the first forward, and nothing without a failure") {
  on_ranks(2, [](const Rank& rank) {
    join(rank);
    small::Net net, whole;
    auto module = small::shard(net);
    module.reset_iter_state();
    for (int i = 0; i < 2; ++i) {
      small::loss_of(net, small::batch(i)).backward();
      small::loss_of(whole, small::batch(i)).backward();
      module.reset_iter_state();
    }
    CHECK(small::same_gradients(*net, *whole, rank.size, rank.rank));
  });
}

TEST_CASE("a graph from before a reset that runs after it does not affect later steps") {
  on_ranks(2, [](const Rank& rank) {
    join(rank);
    small::Net net, whole;
    auto module = small::shard(net);
    auto left = small::loss_of(net, small::batch(3));
    module.reset_iter_state();
    left.backward();
    small::zero_grad(*net);
    for (int i = 0; i < 2; ++i) {
      small::loss_of(net, small::batch(i)).backward();
      small::loss_of(whole, small::batch(i)).backward();
    }
    CHECK(small::same_gradients(*net, *whole, rank.size, rank.rank));
  });
}

TEST_CASE("a reset keeps gradients that were reduced before the failed iteration") {
  on_ranks(2, [](const Rank& rank) {
    join(rank);
    small::Net net, whole;
    auto module = small::shard(net);
    small::loss_of(net, small::batch(0)).backward();
    small::loss_of(whole, small::batch(0)).backward();
    for (const auto fault : {&small::LayerImpl::fails_in_forward, &small::LayerImpl::fails_in_backward}) {
      auto& layer = *net->layers[2];  // This iteration has reduced nothing when it fails.
      layer.*fault = true;
      CHECK_THROWS(small::loss_of(net, small::batch(1)).backward());
      layer.*fault = false;
      module.reset_iter_state();
      CHECK(small::same_parameters(*net, *whole, rank.size, rank.rank));
      for (const auto& parameter : net->layers[0]->parameters()) CHECK(parameter.grad().sizes() == parameter.sizes());
    }
  });
}
