#include <doctest/doctest.h>

#include <atomic>

#include "fsdp/join.h"
#include "fsdp/message_of.h"
#include "fsdp/small_net.h"
#include "plimsoll/fsdp/fsdp_state.h"

// The methods of FSDPModule and the functions beside it.

using namespace plimsoll;
using ranks::on_ranks;
using ranks::Rank;
using small::FakeWorld;
using small::join;

namespace {

struct CountingAllGather : fsdp::AllGather {
  int calls = 0, allocations = 0;
  std::vector<std::string> modules;
  at::Tensor allocate(std::int64_t numel, at::ScalarType dtype, at::Device device) override {
    ++allocations;
    return fsdp::AllGather::allocate(numel, dtype, device);
  }
  distributed::Work operator()(const at::Tensor& output, const at::Tensor& input,
                               const distributed::ProcessGroup& group, bool async_op, std::string_view what) override {
    ++calls;
    modules.emplace_back(what);
    return fsdp::AllGather::operator()(output, input, group, async_op, what);
  }
};

struct CountingReduceScatter : fsdp::ReduceScatter {
  int calls = 0, allocations = 0;
  at::Tensor allocate(std::int64_t numel, at::ScalarType dtype, at::Device device) override {
    ++allocations;
    return fsdp::ReduceScatter::allocate(numel, dtype, device);
  }
  distributed::Work operator()(const at::Tensor& output, const at::Tensor& input,
                               const distributed::ProcessGroup& group, const c10d::ReduceOp& op, bool async_op,
                               std::string_view what) override {
    ++calls;
    return fsdp::ReduceScatter::operator()(output, input, group, op, async_op, what);
  }
};

}  // namespace

TEST_CASE("unshard gathers a module's own parameters, reshard frees them, and repeated calls do nothing") {
  on_ranks(2, [](const Rank& rank) {
    join(rank);
    small::Net net, whole;
    auto module = small::shard(net);
    auto layer = fsdp::FSDPModule(net->layers[0]);
    for (int i = 0; i < 2; ++i) {
      layer.unshard();
      layer.unshard().wait();
      CHECK(at::equal(net->layers[0]->linear->weight.detach(), whole->layers[0]->linear->weight.detach()));
      CHECK(net->layers[1]->linear->weight.size(0) < 5);
      CHECK(net->head->weight.size(0) < 2);
      layer.reshard();
      layer.reshard();
      CHECK(small::same_parameters(*net, *whole, rank.size, rank.rank));
    }
    module.unshard();
    CHECK(at::equal(net->head->weight.detach(), whole->head->weight.detach()));
    CHECK(net->layers[0]->linear->weight.size(0) < 5);
    module.reshard();
  });
}

TEST_CASE("an asynchronous unshard shows the whole parameters after its handle's wait") {
  on_ranks(2, [](const Rank& rank) {
    join(rank);
    small::Net net, whole;
    small::shard(net);
    auto layer = fsdp::FSDPModule(net->layers[0]);
    auto handle = layer.unshard(/*async_op=*/true);
    CHECK(net->layers[0]->linear->weight.size(0) < 5);
    handle.wait();
    handle.wait();
    CHECK(at::equal(net->layers[0]->linear->weight.detach(), whole->layers[0]->linear->weight.detach()));
    layer.reshard();
  });
}

TEST_CASE("the module's forward waits for a dropped handle") {
  on_ranks(2, [](const Rank& rank) {
    join(rank);
    small::Net net, whole;
    auto module = small::shard(net);
    for (int i = 0; i < 2; ++i) {
      for (auto& layer : net->layers) fsdp::FSDPModule(layer).unshard(/*async_op=*/true);
      module.unshard(/*async_op=*/true);
      small::loss_of(net, small::batch(i)).backward();
      small::loss_of(whole, small::batch(i)).backward();
    }
    CHECK(small::same_gradients(*net, *whole, rank.size, rank.rank));
  });
}

TEST_CASE("custom communication serves buffers and transfers of its module only") {
  on_ranks(2, [](const Rank& rank) {
    join(rank);
    small::Net net, whole;
    small::shard(net);
    const auto gather = std::make_shared<CountingAllGather>();
    const auto scatter = std::make_shared<CountingReduceScatter>();
    fsdp::FSDPModule(net->layers[1]).set_custom_all_gather(gather);
    fsdp::FSDPModule(net->layers[1]).set_custom_reduce_scatter(scatter);
    small::loss_of(net, small::batch()).backward();
    small::loss_of(whole, small::batch()).backward();
    CHECK(gather->calls == 2);
    CHECK(gather->allocations == 2);
    CHECK(gather->modules == std::vector<std::string>{"layer1", "layer1"});
    CHECK(scatter->calls == 1);
    CHECK(scatter->allocations == 2);  // The input and the output.
    CHECK(small::same_gradients(*net, *whole, rank.size, rank.rank));
  });
}

TEST_CASE("without resharding after forward a module is gathered once per step") {
  const FakeWorld world(2);
  for (const bool reshard : {true, false}) {
    small::Net net;
    small::shard(net, {.mesh = FakeWorld::mesh(), .reshard_after_forward = reshard});
    const auto gather = std::make_shared<CountingAllGather>();
    for (const auto& layer : net->layers) fsdp::FSDPModule(layer).set_custom_all_gather(gather);
    small::loss_of(net, small::batch()).backward();
    CHECK(gather->calls == (reshard ? 6 : 3));
  }
}

TEST_CASE("set_reshard_after_forward and after_backward apply to the modules below, unless recurse is false") {
  const FakeWorld world(2);
  small::Net net;
  auto module = small::shard(net, {.mesh = FakeWorld::mesh(), .reshard_after_forward = false});
  const auto& inner = net->layers[0]->linear->weight;
  const auto& own = net->head->weight;
  module.set_reshard_after_backward(false, {.recurse = false});
  small::loss_of(net, small::batch()).backward();
  CHECK(inner.size(0) == 3);
  CHECK(own.size(0) == 1);
  CHECK(fsdp::FSDPState::of(*net)->fsdp_param_groups[0]->is_unsharded());
  module.set_reshard_after_backward(false);
  small::loss_of(net, small::batch()).backward();
  CHECK(inner.size(0) == 5);
  module.set_reshard_after_backward(true);
  module.set_reshard_after_forward(true);
  auto loss = small::loss_of(net, small::batch());
  CHECK(inner.size(0) == 3);
  loss.backward();
}

TEST_CASE("the all-reduce hook gets the module's flat reduced gradients, and its writes change the gradients") {
  on_ranks(2, [](const Rank& rank) {
    join(rank);
    small::Net net, whole;
    small::shard(net);
    std::vector<std::int64_t> numels;
    fsdp::FSDPModule(net->layers[0]).set_all_reduce_hook([&](at::Tensor gradients) {
      numels.push_back(gradients.numel());
      gradients.mul_(2);
    });
    small::loss_of(net, small::batch()).backward();
    small::loss_of(whole, small::batch()).backward();
    for (auto& parameter : whole->layers[0]->parameters()) parameter.mutable_grad().mul_(2);
    CHECK(numels == std::vector<std::int64_t>{3 * 5 + 3});
    CHECK(small::same_gradients(*net, *whole, rank.size, rank.rank));
  });
}

TEST_CASE("an all-reduce hook with a separate stream is refused with HSDP") {
  const FakeWorld world(4);
  small::Layer layer(4);
  auto module =
      fsdp::fully_shard(layer, {.mesh = distributed::DeviceMesh::init(at::kCPU, {2, 2}, {"replicate", "shard"})});
  const c10::Stream stream(c10::Stream::DEFAULT, at::Device(at::kCPU));
  CHECK(small::message_of([&] { module.set_all_reduce_hook([](at::Tensor) {}, stream); }) ==
        doctest::Contains("pass no stream"));
}

TEST_CASE("two roots train side by side, with and without a shared communication context") {
  on_ranks(2, [](const Rank& rank) {
    join(rank);
    for (const bool shared : {false, true}) {
      small::Net first, second, whole_first, whole_second;
      auto one = small::shard(first), other = small::shard(second);
      if (shared) fsdp::share_comm_ctx({one, other});
      for (int i = 0; i < 3; ++i) {
        for (auto [a, b] : {std::pair(&first, &second), std::pair(&whole_first, &whole_second)}) {
          small::zero_grad(**a);
          small::zero_grad(**b);
          auto loss = small::loss_of(*a, small::batch(i)) * small::loss_of(*b, small::batch(i + 1));
          loss.backward();
          small::step(**a);
          small::step(**b);
        }
      }
      CHECK(small::same_parameters(*first, *whole_first, rank.size, rank.rank));
      CHECK(small::same_parameters(*second, *whole_second, rank.size, rank.rank));
      CHECK((one.state()->comm_ctx == other.state()->comm_ctx) == shared);
    }
  });
}

TEST_CASE("roots of different depth with one communication context run backward one after the other") {
  on_ranks(2, [](const Rank& rank) {
    join(rank);
    small::Net deep(5, 6), shallow(5, 1), whole_deep(5, 6), whole_shallow(5, 1);
    auto one = small::shard(deep), other = small::shard(shallow);
    fsdp::share_comm_ctx({one, other});
    for (int i = 0; i < 3; ++i) {
      for (auto [a, b] : {std::pair(&deep, &shallow), std::pair(&whole_deep, &whole_shallow)}) {
        auto first = small::loss_of(*a, small::batch(i));
        auto second = small::loss_of(*b, small::batch(i));
        second.backward();
        first.backward();
      }
    }
    CHECK(small::same_gradients(*deep, *whole_deep, rank.size, rank.rank));
    CHECK(small::same_gradients(*shallow, *whole_shallow, rank.size, rank.rank));
  });
}

TEST_CASE("call_as_forward gathers for a method, and its backward reduces") {
  on_ranks(2, [](const Rank& rank) {
    join(rank);
    small::Net net, whole;
    small::shard(net);
    const auto twice = [](small::Net& model, const at::Tensor& input) {
      return fsdp::call_as_forward(
          model,
          [&](at::Tensor x) {
            for (auto& layer : model->layers) x = layer(x);
            return at::linear(x, model->head->weight, model->head->bias) * 2;
          },
          input);
    };
    for (auto* one : {&net, &whole}) twice(*one, small::batch()).sum().backward();
    CHECK(small::same_gradients(*net, *whole, rank.size, rank.rank));
    CHECK(net->head->weight.size(0) < 2);
  });
}

TEST_CASE("a module without parameters of its own can be the root") {
  on_ranks(2, [](const Rank& rank) {
    join(rank);
    small::Net net, whole;
    const fsdp::FullyShardOptions options{.mesh = small::cpu_mesh()};
    for (auto& layer : net->layers) fsdp::fully_shard(layer, options);
    fsdp::fully_shard(net->head, options);
    fsdp::fully_shard(net, options);
    for (auto* one : {&net, &whole}) small::loss_of(*one, small::batch()).backward();
    CHECK(small::same_gradients(*net, *whole, rank.size, rank.rank));
  });
}

TEST_CASE("a gradient divide factor replaces the number of ranks") {
  on_ranks(2, [](const Rank& rank) {
    join(rank);
    small::Net net, whole;
    auto module = small::shard(net);
    for (auto& layer : net->layers) {
      fsdp::FSDPModule(layer).set_gradient_divide_factor(0.5);
      fsdp::FSDPModule(layer).set_force_sum_reduction_for_comms(true);
    }
    module.set_gradient_divide_factor(0.5);
    module.set_force_sum_reduction_for_comms(true);
    for (auto* one : {&net, &whole}) small::loss_of(*one, small::batch()).backward();
    for (auto& parameter : whole->parameters())
      parameter.mutable_grad().mul_(4);  // Summed over two ranks, divided by a half.
    CHECK(small::same_gradients(*net, *whole, rank.size, rank.rank));
  });
}
