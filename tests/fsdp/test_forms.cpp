#include <ATen/Functions.h>
#include <c10/core/GradMode.h>
#include <doctest/doctest.h>

#include "fsdp/message_of.h"
#include "fsdp/small_net.h"
#include "plimsoll/fsdp/param/materialize.h"
#include "plimsoll/nn/hooks/autograd_hooks.h"
#include "plimsoll/nn/optim/sgd.h"

// Interactions of the two forms of a parameter, shard and whole, and refused uses. See the note in fsdp_param.h.

using doctest::Contains;
using small::FakeWorld;
using small::message_of;
using namespace plimsoll;

namespace {

void evaluate(small::Net& net) {
  const at::NoGradGuard no_grad;
  net(small::batch(0, 4));
}

}  // namespace

TEST_CASE("an optimizer does not step on a parameter that an evaluation left whole") {
  const FakeWorld world(2);
  small::Net net(4);
  auto root = small::shard(net);
  nn::SGD optimizer(net->parameters(), {.lr = 0.1});
  small::loss_of(net, small::batch(0, 4)).backward();
  evaluate(net);
  const auto message = message_of([&] { optimizer.step(); });
  CHECK(message == Contains("An optimizer was about to step on the whole parameter 'head.weight'"));
  CHECK(message == Contains("FSDPModule::reshard()"));
  root.reshard();
  CHECK(message_of([&] { optimizer.step(); }) == "");
}

TEST_CASE("a write into a whole parameter is an error") {
  const FakeWorld world(2);
  small::Net net(4);
  auto root = small::shard(net);
  evaluate(net);
  SUBCASE("values") {
    const at::NoGradGuard no_grad;
    net->head->weight.fill_(1);
    CHECK(message_of([&] { root.reshard(); }) == Contains("The whole parameter 'head.weight' was written to"));
    CHECK(message_of([&] { net(small::batch(0, 4)); }) == Contains("The whole parameter 'head.weight' was written to"));
  }
  SUBCASE("data") {
    net->head->to(at::kDouble);
    CHECK(message_of([&] { root.reshard(); }) == Contains("The whole parameter 'head.weight' was given other data"));
  }
}

TEST_CASE("a value computed from a parameter at rest adds its gradient to the shard's") {
  const FakeWorld world(2);
  small::Net net(4);
  small::shard(net);
  small::loss_of(net, small::batch(0, 4)).backward();
  const auto& weight = net->layers[0]->linear->weight;
  const at::Tensor before = weight.grad().clone();
  weight.square().sum().backward();
  CHECK(at::equal(weight.grad(), before + 2 * weight.detach()));
}

TEST_CASE("a gradient of the shard's shape is refused while the parameter is whole") {
  const FakeWorld world(4);  // A shard of one row: its gradient would be broadcast over the whole.
  small::Net net(4);
  small::shard(net);
  evaluate(net);
  fsdp::FSDPModule(net).reshard();
  const auto penalty = net->layers[0]->linear->weight.square().sum();
  const auto loss = small::loss_of(net, small::batch(0, 4));
  CHECK(message_of([&] { (loss + penalty).backward(); }) == Contains("a value was computed from its shard"));
}

TEST_CASE("a gradient outside FSDP's backward does not change the parameter's form") {
  const FakeWorld world(2);
  small::Net net(4);
  auto root = small::shard(net);
  evaluate(net);  // The head is whole.
  net->head->weight.square().sum().backward();
  CHECK_FALSE(net->head->weight.grad().defined());
  root.reshard();
  CHECK(net->head->weight.sizes() == at::IntArrayRef({1, 4}));
}

TEST_CASE("sharding can be tried again after an error") {
  const FakeWorld world(2);
  small::Holder holder(
      std::vector<at::Tensor>{at::ones({4, 2}).requires_grad_(), at::ones({3, 4}).t().requires_grad_()});
  CHECK(message_of([&] { fsdp::fully_shard(holder, {.mesh = FakeWorld::mesh()}); }) == Contains("not contiguous"));
  auto parameters = holder->parameters();
  CHECK(parameters[0].sizes() == at::IntArrayRef({4, 2}));
  parameters[1].set_data(parameters[1].contiguous());
  fsdp::fully_shard(holder, {.mesh = FakeWorld::mesh()});
  CHECK(parameters[0].sizes() == at::IntArrayRef({2, 2}));
  CHECK(parameters[1].sizes() == at::IntArrayRef({2, 3}));
}

TEST_CASE("forward can be tried again after an error about parameters on meta") {
  const FakeWorld world(2);
  small::Holder holder(std::vector<at::Tensor>{at::empty({4, 2}, at::kMeta).requires_grad_()});
  fsdp::fully_shard(
      holder, {.mesh = FakeWorld::mesh(), .mp_policy = {.param_dtype = at::kBFloat16, .reduce_dtype = at::kFloat}});
  CHECK(message_of([&] { holder(at::ones({1})); }) == Contains("still on the meta device"));
  fsdp::to_empty(holder, at::kCPU);
  holder(at::ones({1}));
  CHECK((holder->parameters()[0].scalar_type() == at::kBFloat16));  // The root stays whole, in its compute dtype.
}

TEST_CASE("a gradient from before sharding is dropped with the whole parameter") {
  const FakeWorld world(2);
  small::Net net(4);
  small::loss_of(net, small::batch(0, 4)).backward();
  small::shard(net);
  for (const auto& parameter : net->parameters()) CHECK_FALSE(parameter.grad().defined());
}

TEST_CASE("a group that is unfrozen later reduces in its dtypes") {
  const FakeWorld world(2);
  small::Net net(4);
  small::shard(net, {.mp_policy = {.param_dtype = at::kBFloat16, .reduce_dtype = at::kFloat}});
  for (auto& parameter : net->parameters()) parameter.set_requires_grad(false);
  net(small::batch(0, 4));
  fsdp::FSDPModule(net).reshard();
  for (auto& parameter : net->parameters()) parameter.set_requires_grad(true);
  small::loss_of(net, small::batch(0, 4)).backward();
  for (const auto& parameter : net->parameters()) CHECK((parameter.grad().scalar_type() == at::kFloat));
}

TEST_CASE("a hook after accumulation sees the shard even if parameters stay whole after backward") {
  const FakeWorld world(2);
  small::Net net(4);
  auto root = small::shard(net);
  root.set_reshard_after_backward(false);
  std::vector<std::int64_t> rows;
  const auto& weight = net->layers[0]->linear->weight;
  const auto handle = nn::register_post_accumulate_grad_hook(
      weight, [&](const at::Tensor& parameter) { rows = {parameter.size(0), parameter.grad().size(0)}; });
  small::loss_of(net, small::batch(0, 4)).backward();
  CHECK(rows == std::vector<std::int64_t>{2, 2});
  CHECK(weight.size(0) == 4);
}

TEST_CASE("the same module twice in one group is refused") {
  const FakeWorld world(2);
  small::Layer layer(4);
  CHECK(message_of([&] { fsdp::fully_shard({layer, layer}, {.mesh = FakeWorld::mesh()}); }) ==
        Contains("The same Layer is twice in the list"));
}

TEST_CASE("another shard dimension with resharding to fewer ranks is refused at once") {
  const FakeWorld world(4);
  small::Layer layer(4);
  const auto along_last = [](const at::Tensor& parameter) -> fsdp::ShardPlacement {
    return fsdp::Shard{parameter.dim() - 1};
  };
  CHECK(message_of([&] {
          fsdp::fully_shard(layer,
                            {.mesh = FakeWorld::mesh(), .reshard_after_forward = 2, .shard_placement_fn = along_last});
        }) == Contains("cannot be combined with reshard_after_forward to fewer ranks"));
}
