#include <doctest/doctest.h>

#include "fsdp/join.h"
#include "fsdp/small_net.h"
#include "plimsoll/nn/optim/sgd.h"

// A parameter keeps its identity. Its data, its gradient and their shapes are the shard's at rest and the whole's while
// the module runs.

using namespace plimsoll;
using ranks::on_ranks;
using ranks::Rank;
using small::FakeWorld;
using small::join;

namespace {

using Sizes = std::vector<std::int64_t>;

}  // namespace

TEST_CASE("the handles of members and optimizers refer to the parameters in every form") {
  const FakeWorld world(2);
  small::Net net;
  const auto before = net->parameters();
  const auto member = net->layers[0]->linear->weight;
  nn::SGD early(net->parameters(), {.lr = 0.1});
  auto module = small::shard(net, {.mesh = FakeWorld::mesh()});
  const auto is_same = [&] {
    const auto now = net->parameters();
    for (std::size_t i = 0; i < now.size(); ++i) {
      if (!now[i].is_same(before[i])) return false;
    }
    return net->layers[0]->linear->weight.is_same(member) && now.size() == before.size();
  };
  CHECK(is_same());
  module.unshard();
  CHECK(is_same());
  CHECK(net->head->weight.sizes() == at::IntArrayRef({1, 5}));
  module.reshard();
  auto loss = small::loss_of(net, small::batch());
  CHECK(is_same());
  loss.backward();
  CHECK(is_same());
  const auto values = member.detach().clone();
  early.step();
  CHECK(is_same());
  CHECK_FALSE(at::equal(values, member.detach()));
}

TEST_CASE("a parameter is a leaf that requires a gradient in every form") {
  const FakeWorld world(2);
  small::Net net;
  small::shard(net, {.mesh = FakeWorld::mesh()});
  net->layers[1]->register_forward_pre_hook([](torch::nn::Module& module, nn::Tensors&) {
    for (const auto& parameter : module.parameters()) {
      CHECK(parameter.is_leaf());
      CHECK(parameter.requires_grad());
      CHECK(parameter.size(0) == 5);
    }
  });
  small::loss_of(net, small::batch()).backward();
  for (const auto& parameter : net->parameters()) {
    CHECK(parameter.is_leaf());
    CHECK(parameter.requires_grad());
  }
}

TEST_CASE("shapes of parameter and gradient are the shard's at rest, the whole's while the module runs") {
  const FakeWorld world(2, 1);
  small::Net net;
  small::shard(net, {.mesh = FakeWorld::mesh()});
  const at::Tensor weight = net->layers[1]->linear->weight;
  const auto sizes = [&] { return weight.sizes().vec(); };
  const auto grad_sizes = [&] { return weight.grad().defined() ? weight.grad().sizes().vec() : Sizes{}; };
  CHECK(sizes() == Sizes{2, 5});  // The second rank's part of five rows.
  Sizes in_forward, in_backward, grad_in_backward;
  net->layers[1]->register_forward_pre_hook([&](torch::nn::Module&, nn::Tensors&) { in_forward = sizes(); });
  net->layers[1]->register_forward_hook([&](torch::nn::Module&, nn::Tensors&, nn::Tensors& results) {
    results[0].register_hook([&](const at::Tensor&) {
      in_backward = sizes();
      grad_in_backward = grad_sizes();
    });
  });
  for (const Sizes& grad_before : {Sizes{}, Sizes{2, 5}}) {  // The second time, a gradient exists to add to.
    auto loss = small::loss_of(net, small::batch());
    CHECK(in_forward == Sizes{5, 5});
    CHECK(sizes() == Sizes{2, 5});
    CHECK(grad_sizes() == grad_before);
    loss.backward();
    CHECK(in_backward == Sizes{5, 5});
    CHECK(grad_in_backward == grad_before);  // Gradients come after it.
    CHECK(sizes() == Sizes{2, 5});
    CHECK(grad_sizes() == Sizes{2, 5});
  }
}

TEST_CASE("an empty shard is a parameter of no rows, with a gradient of no rows") {
  const FakeWorld world(4, 3);
  small::Net net;
  small::shard(net, {.mesh = FakeWorld::mesh()});
  small::loss_of(net, small::batch()).backward();
  const auto& bias = net->head->bias;
  CHECK(bias.sizes() == at::IntArrayRef({0}));
  REQUIRE(bias.grad().defined());
  CHECK(bias.grad().sizes() == at::IntArrayRef({0}));
  CHECK(net->layers[0]->linear->weight.grad().sizes() == at::IntArrayRef({0, 5}));
}

TEST_CASE("with mixed precision the shard and its gradient have the stored dtype, the whole has the compute dtype") {
  const FakeWorld world(2);
  small::Net net;
  fsdp::FullyShardOptions options{.mesh = FakeWorld::mesh()};
  options.mp_policy = {.param_dtype = at::kBFloat16, .reduce_dtype = at::kFloat};
  for (auto& layer : net->layers) fsdp::fully_shard(layer, options);
  options.mp_policy.output_dtype = at::kDouble;
  fsdp::fully_shard(net, options);
  const at::Tensor weight = net->layers[1]->linear->weight;
  at::ScalarType in_forward{}, input{};
  net->layers[1]->register_forward_pre_hook([&](torch::nn::Module&, nn::Tensors& arguments) {
    in_forward = weight.scalar_type();
    input = arguments[0].scalar_type();
  });
  auto output = net(small::batch());
  CHECK((in_forward == at::kBFloat16));
  CHECK((input == at::kBFloat16));
  CHECK((output.scalar_type() == at::kDouble));
  CHECK((weight.scalar_type() == at::kFloat));
  output.sum().backward();
  CHECK((weight.scalar_type() == at::kFloat));
  CHECK((weight.grad().scalar_type() == at::kFloat));
}

TEST_CASE("resharded to fewer ranks after forward, a parameter shows the larger shard until backward") {
  const FakeWorld world(4, 3);
  small::Net net(8);
  small::shard(net, {.mesh = FakeWorld::mesh(), .reshard_after_forward = 2});
  const auto& weight = net->layers[0]->linear->weight;
  CHECK(weight.size(0) == 2);
  auto loss = small::loss_of(net, small::batch(0, 8));
  CHECK(weight.size(0) == 4);
  loss.backward();
  CHECK(weight.size(0) == 2);
  CHECK(weight.grad().size(0) == 2);
}

TEST_CASE("without resharding after forward a parameter is whole until backward has used it") {
  const FakeWorld world(2);
  small::Net net;
  small::shard(net, {.mesh = FakeWorld::mesh(), .reshard_after_forward = false});
  const auto& weight = net->layers[0]->linear->weight;
  auto loss = small::loss_of(net, small::batch());
  CHECK(weight.size(0) == 5);
  loss.backward();
  CHECK(weight.size(0) == 3);
}

TEST_CASE("by default only the root stays whole after forward") {
  const FakeWorld world(2, 1);
  small::Net net;
  small::shard(net, {.mesh = FakeWorld::mesh()});
  auto loss = small::loss_of(net, small::batch());
  CHECK(net->head->weight.size(0) == 1);
  CHECK(net->layers[2]->linear->weight.size(0) == 2);
  loss.backward();
  CHECK(net->head->weight.size(0) == 0);
}

TEST_CASE("while gradients are not reduced, grad() is the shard's: undefined, or from earlier backwards") {
  const FakeWorld world(2);
  small::Net net;
  auto module = small::shard(net, {.mesh = FakeWorld::mesh()});
  const auto& weight = net->layers[0]->linear->weight;
  module.set_requires_gradient_sync(false);
  small::loss_of(net, small::batch()).backward();
  CHECK_FALSE(weight.grad().defined());
  module.set_requires_gradient_sync(true);
  small::loss_of(net, small::batch()).backward();
  REQUIRE(weight.grad().defined());
  const auto first = weight.grad().clone();
  module.set_requires_gradient_sync(false);
  small::loss_of(net, small::batch()).backward();
  CHECK(at::equal(weight.grad(), first));
}

// --- zero_grad -----------------------------------------------------------------------------------------------------

namespace {

enum class Place : std::uint8_t { kBeforeForward, kBeforeBackward, kAfterStep };

/// Four steps with accumulation over two batches; the first batch is not reduced.
template <class Sync>
void train(small::Net& net, Place place, bool set_to_none, const Sync& sync) {
  nn::SGD optimizer(net->parameters(), {.lr = 0.1, .momentum = 0.9});
  for (int i = 0; i < 4; ++i) {
    if (place == Place::kBeforeForward) optimizer.zero_grad(set_to_none);
    sync(false);
    auto loss = small::loss_of(net, small::batch(2 * i));
    if (place == Place::kBeforeBackward) optimizer.zero_grad(set_to_none);
    loss.backward();
    sync(true);
    small::loss_of(net, small::batch(2 * i + 1)).backward();
    optimizer.step();
    if (place == Place::kAfterStep) optimizer.zero_grad(set_to_none);
  }
}

}  // namespace

TEST_CASE("zero_grad works anywhere in the loop, with set_to_none true or false") {
  on_ranks(2, [](const Rank& rank) {
    join(rank);
    small::Net whole;
    train(whole, Place::kBeforeForward, true, [](bool) {});
    for (const Place place : {Place::kBeforeForward, Place::kBeforeBackward, Place::kAfterStep}) {
      for (const bool set_to_none : {true, false}) {
        small::Net net;
        auto module = small::shard(net);
        train(net, place, set_to_none, [&](bool sync) { module.set_requires_gradient_sync(sync); });
        CHECK(small::same_parameters(*net, *whole, rank.size, rank.rank));
      }
    }
  });
}

TEST_CASE("zero_grad between two reduced backwards drops only the first gradient") {
  on_ranks(2, [](const Rank& rank) {
    join(rank);
    small::Net net, whole;
    small::shard(net);
    for (auto* one : {&net, &whole}) {
      small::loss_of(*one, small::batch(0)).backward();
      small::zero_grad(**one);
      small::loss_of(*one, small::batch(1)).backward();
    }
    CHECK(small::same_gradients(*net, *whole, rank.size, rank.rank));
  });
}
