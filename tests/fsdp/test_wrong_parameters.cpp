#include <doctest/doctest.h>

#include "fsdp/message_of.h"
#include "fsdp/small_net.h"
#include "plimsoll/fsdp/param/materialize.h"
#include "plimsoll/nn/device_scope.h"

// Errors for parameters that FSDP cannot shard, and for parameters that change outside FSDP.

using namespace plimsoll;
using doctest::Contains;
using small::FakeWorld;
using small::Holder;
using small::message_of;

// --- Parameters ----------------------------------------------------------------------------------------------------

TEST_CASE("a parameter without dimensions is refused, and the message says what to do") {
  const FakeWorld world(2);
  Holder holder(std::vector<at::Tensor>{at::ones({4}), at::ones({})});
  const auto message = message_of([&] { fsdp::fully_shard(holder, {.mesh = FakeWorld::mesh()}); });
  CHECK(message == Contains("p1 of Holder has no dimension to shard along"));
  CHECK(message == Contains("the shape [1]"));
  CHECK(message == Contains("ignored_params"));
  fsdp::fully_shard(holder, {.mesh = FakeWorld::mesh(), .ignored_params = {holder->parameters()[1]}});
  CHECK(holder->parameters()[0].size(0) == 2);
  CHECK(holder->parameters()[1].dim() == 0);
}

TEST_CASE("a parameter that is not contiguous is refused, and the message says how to make it contiguous") {
  const FakeWorld world(2);
  Holder holder(std::vector<at::Tensor>{at::ones({4, 6}).t()});
  const auto message = message_of([&] { fsdp::fully_shard(holder, {.mesh = FakeWorld::mesh()}); });
  CHECK(message == Contains("p0 of shape [6, 4] and strides [1, 6] is not contiguous"));
  CHECK(message == Contains("set_data"));
}

TEST_CASE("a parameter that two groups share is refused, and the message says how to merge them") {
  const FakeWorld world(2);
  const auto shared = at::ones({4, 4});
  Holder one(std::vector<at::Tensor>{shared}), other(std::vector<at::Tensor>{shared});
  fsdp::fully_shard(one, {.mesh = FakeWorld::mesh()});
  const auto message = message_of([&] { fsdp::fully_shard(other, {.mesh = FakeWorld::mesh()}); });
  CHECK(message == Contains("p0 of Holder is already managed by FSDP in another group"));
  CHECK(message == Contains("fully_shard({a, b})"));
  Holder third(std::vector<at::Tensor>{at::ones({4})});
  fsdp::fully_shard(std::vector<fsdp::ModuleRef>{third}, {.mesh = FakeWorld::mesh()});
}

TEST_CASE("a dimension other than the first must exist and divide evenly") {
  const FakeWorld world(3);
  Holder holder(std::vector<at::Tensor>{at::ones({6, 4})});
  const auto along = [](std::int64_t dim) {
    return fsdp::FullyShardOptions{.mesh = FakeWorld::mesh(),
                                   .shard_placement_fn = [dim](const at::Tensor&) { return fsdp::Shard{dim}; }};
  };
  CHECK(message_of([&] { fsdp::fully_shard(holder, along(1)); }) ==
        Contains("p0 of shape [6, 4] cannot be split along dimension 1 over 3 ranks"));
  CHECK(message_of([&] { fsdp::fully_shard(holder, along(2)); }) ==
        Contains("asks for dimension 2 of the parameter p0, which has shape [6, 4]"));
  CHECK(message_of([&] { fsdp::fully_shard(holder, along(-3)); }) == Contains("asks for dimension -3"));
  fsdp::fully_shard(holder, along(-2));
  CHECK(holder->parameters()[0].sizes() == at::IntArrayRef({2, 4}));
}

TEST_CASE("a shard placement without its mesh, or with two objects for one mesh, is refused") {
  const FakeWorld world(2);
  Holder holder(std::vector<at::Tensor>{at::ones({4}), at::ones({4})});
  const auto with = [&](fsdp::ShardPlacementFn fn) {
    return message_of([&] { fsdp::fully_shard(holder, {.mesh = FakeWorld::mesh(), .shard_placement_fn = fn}); });
  };
  CHECK(with([](const at::Tensor&) { return fsdp::ShardPlacementResult{}; }) == Contains("found none"));
  const auto mesh = FakeWorld::mesh();
  CHECK(with([&](const at::Tensor&) {
          return fsdp::ShardPlacementResult{std::nullopt, std::make_shared<fsdp::FSDPMeshInfo>(mesh)};
        }) == Contains("returned two FSDPMeshInfo objects"));
}

TEST_CASE("trainable parameters of one group must have one dtype") {
  const FakeWorld world(2);
  Holder holder(std::vector<at::Tensor>{at::ones({4}), at::ones({4}, at::kBFloat16)});
  fsdp::fully_shard(holder, {.mesh = FakeWorld::mesh()});
  const auto message = message_of([&] { holder(at::ones({1})); });
  CHECK(message == Contains("have different dtypes (Float and BFloat16)"));
  CHECK(message == Contains("apply fully_shard to the modules separately"));
  Holder half_frozen(std::vector<at::Tensor>{at::ones({4}), at::ones({4}, at::kBFloat16).set_requires_grad(false)});
  half_frozen->parameters()[1].set_requires_grad(false);
  fsdp::fully_shard(half_frozen, {.mesh = FakeWorld::mesh()});
  CHECK(message_of([&] { half_frozen(at::ones({1})); }) == "");
}

TEST_CASE("parameters on meta at the first forward are named, and the message says how to allocate them") {
  const FakeWorld world(2);
  small::Net net{nullptr};
  {
    const nn::DeviceScope meta(at::kMeta);
    net = small::Net(4);
  }
  small::shard(net, {.mesh = FakeWorld::mesh()});
  const auto message = message_of([&] { net(small::batch(0, 4)); });
  CHECK(message == Contains("still on the meta device"));
  CHECK(message == Contains("fsdp::to_empty"));
  CHECK(message == Contains("'head.weight'"));
}

// --- Data that changes after sharding ------------------------------------------------------------------------------

TEST_CASE("a parameter whose shape is not the shard's is refused at the first forward") {
  const FakeWorld world(2);
  small::Net net(4);
  small::shard(net, {.mesh = FakeWorld::mesh()});
  net->layers[1]->linear->weight.set_data(at::ones({4, 4}));
  const auto message = message_of([&] { net(small::batch(0, 4)); });
  CHECK(message == Contains("'layer1.linear.weight' was given data of shape [4, 4]"));
  CHECK(message == Contains("this rank's shard of shape [2, 4]"));
  CHECK(message == Contains("fsdp::load_full_state"));
}

TEST_CASE("before the first forward a module may change dtype and data") {
  const FakeWorld world(1);
  small::Net net(4);
  small::shard(net, {.mesh = FakeWorld::mesh()});
  net->to(at::kDouble);
  net->head->bias.set_data(at::full({1}, 7.0, at::kDouble));
  const auto output = net(small::batch(0, 4).to(at::kDouble));
  CHECK((output.scalar_type() == at::kDouble));
  CHECK(output.mean().item<double>() > 5);
}

TEST_CASE("after the first forward another dtype or other memory is refused, and the message says what to do") {
  const FakeWorld world(2);
  small::Net net(4);
  small::shard(net, {.mesh = FakeWorld::mesh()});
  {
    net(small::batch(0, 4));
    fsdp::FSDPModule(net).reshard();
  }
  SUBCASE("dtype") {
    net->to(at::kDouble);
    const auto message = message_of([&] { net(small::batch(0, 4).to(at::kDouble)); });
    CHECK(message == Contains("'head.weight' is Double after the first forward, but was Float"));
    CHECK(message == Contains("MixedPrecisionPolicy"));
  }
  SUBCASE("memory") {
    auto& weight = net->layers[0]->linear->weight;
    weight.set_data(weight.detach().clone());
    const auto message = message_of([&] { net(small::batch(0, 4)); });
    CHECK(message == Contains("'layer0.linear.weight' was given other data after the first forward"));
    CHECK(message == Contains("parameter.copy_(…)"));
    CHECK(message == Contains("fsdp::reset_sharded_params"));
    fsdp::FSDPModule(net).reset_iter_state();
    fsdp::reset_sharded_params(net);
    CHECK(message_of([&] { net(small::batch(0, 4)); }) == "");
  }
  SUBCASE("in place") {
    const at::NoGradGuard no_grad;
    net->layers[0]->linear->weight.fill_(0.5);
    CHECK(message_of([&] { net(small::batch(0, 4)); }) == "");
  }
}

TEST_CASE("a dtype that changes between forward and backward is refused in backward") {
  const FakeWorld world(2);
  small::Net net(4);
  small::shard(net, {.mesh = FakeWorld::mesh()});
  const auto loss = small::loss_of(net, small::batch(0, 4));
  net->layers[0]->to(at::kDouble);
  CHECK(message_of([&] { loss.backward(); }) == Contains("is Double after the first forward"));
}
