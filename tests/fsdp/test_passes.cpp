#include <c10/core/InferenceMode.h>
#include <doctest/doctest.h>

#include "fsdp/join.h"
#include "fsdp/small_net.h"
#include "plimsoll/fsdp/fsdp_state.h"
#include "plimsoll/nn/hooks/autograd_hooks.h"

// Forward and backward in other orders. Ranks have the same batches, so that gradients are equal to the bit to those of
// an unsharded model.

using namespace plimsoll;
using ranks::on_ranks;
using ranks::Rank;
using small::join;

namespace {

/// Runs the same work with a sharded and a whole model, and compares the gradients.
template <class Work>
void compare(const Rank& rank, const fsdp::FullyShardOptions& options, Work work) {
  small::Net net, whole;
  small::shard(net, options);
  work(net);
  work(whole);
  CHECK(small::same_gradients(*net, *whole, rank.size, rank.rank));
  CHECK(small::same_parameters(*net, *whole, rank.size, rank.rank));
  for (const auto& layer : net->layers) {
    const auto state = fsdp::FSDPState::of(*layer);
    CHECK(state->training_state() == fsdp::TrainingState::kIdle);
    CHECK(state->fsdp_param_groups[0]->is_sharded());
  }
}

template <class Work>
void compare_on_two(Work work) {
  on_ranks(2, [work](const Rank& rank) {
    join(rank);
    compare(rank, {}, work);
    compare(rank, {.reshard_after_forward = false}, work);
  });
}

}  // namespace

TEST_CASE("an evaluation without gradients does not affect training") {
  compare_on_two([](small::Net& net) {
    {
      const at::NoGradGuard no_grad;
      net(small::batch(9));
      net(small::batch(8));
    }
    small::loss_of(net, small::batch()).backward();
    small::step(*net);
    {
      const at::NoGradGuard no_grad;
      CHECK_FALSE(net(small::batch(7)).requires_grad());
    }
    small::loss_of(net, small::batch(1)).backward();
  });
}

TEST_CASE("an evaluation in inference mode does not affect training, even as the first forward") {
  compare_on_two([](small::Net& net) {
    {
      const c10::InferenceMode inference;
      CHECK(net(small::batch(9)).is_inference());
    }
    small::loss_of(net, small::batch()).backward();
    small::step(*net);
    {
      const c10::InferenceMode inference;
      net(small::batch(8));
    }
    small::loss_of(net, small::batch(1)).backward();
  });
}

TEST_CASE("an evaluation between forward and backward does not affect them") {
  compare_on_two([](small::Net& net) {
    auto loss = small::loss_of(net, small::batch());
    {
      const at::NoGradGuard no_grad;
      net(small::batch(7));
    }
    loss.backward();
  });
}

TEST_CASE("two forwards and one backward of their sum") {
  compare_on_two([](small::Net& net) {
    auto loss = small::loss_of(net, small::batch(0));
    loss = loss + small::loss_of(net, small::batch(1));
    loss.backward();
  });
}

TEST_CASE("two forwards and a backward of each, the last one first") {
  compare_on_two([](small::Net& net) {
    auto first = small::loss_of(net, small::batch(0));
    auto second = small::loss_of(net, small::batch(1));
    second.backward();
    first.backward();
  });
}

TEST_CASE("several backwards of one forward, with a retained graph") {
  compare_on_two([](small::Net& net) {
    auto loss = small::loss_of(net, small::batch());
    loss.backward({}, /*keep_graph=*/true);
    loss.backward({}, /*keep_graph=*/true);
    loss.backward();
  });
}

TEST_CASE("backward from two outputs of one forward, one after the other") {
  compare_on_two([](small::Net& net) {
    auto output = net(small::batch());
    output[0].sum().backward({}, /*keep_graph=*/true);
    output[1].sum().backward();
  });
}

TEST_CASE("the gradient of an input equals that of an unsharded model") {
  on_ranks(2, [](const Rank& rank) {
    join(rank);
    small::Net net, whole;
    small::shard(net);
    auto one = small::batch().set_requires_grad(true), other = small::batch().set_requires_grad(true);
    small::loss_of(net, one).backward();
    small::loss_of(whole, other).backward();
    CHECK(at::equal(one.grad(), other.grad()));
    CHECK(small::same_gradients(*net, *whole, rank.size, rank.rank));
  });
}

TEST_CASE("parameters are frozen and unfrozen between steps") {
  compare_on_two([](small::Net& net) {
    for (int i = 0; i < 6; ++i) {
      for (auto& parameter : net->layers[1]->parameters()) parameter.set_requires_grad(i % 2 == 1);
      net->head->bias.set_requires_grad(i % 3 != 0);
      small::zero_grad(*net);
      small::loss_of(net, small::batch(i)).backward();
      CHECK(net->layers[1]->linear->weight.grad().defined() == (i % 2 == 1));
      CHECK(net->head->bias.grad().defined() == (i % 3 != 0));
      small::step(*net);
    }
  });
}

TEST_CASE("a parameter that is unfrozen while it is whole, after an evaluation, trains") {
  compare_on_two([](small::Net& net) {
    net->head->bias.set_requires_grad(false);
    {
      const at::NoGradGuard no_grad;
      net(small::batch());  // The root keeps its parameters whole.
    }
    net->head->bias.set_requires_grad(true);
    small::loss_of(net, small::batch()).backward();
  });
}

TEST_CASE("a fully frozen model runs, and trains the part that is unfrozen") {
  compare_on_two([](small::Net& net) {
    for (auto& parameter : net->parameters()) parameter.set_requires_grad(false);
    CHECK_FALSE(net(small::batch()).requires_grad());
    net->layers[0]->linear->bias.set_requires_grad(true);
    small::loss_of(net, small::batch()).backward();
  });
}

TEST_CASE("a layer that one forward skips has no gradient, and takes part again later") {
  on_ranks(2, [](const Rank& rank) {
    join(rank);
    small::Net net, whole;
    small::shard(net);
    for (auto* one : {&net, &whole}) {
      small::loss_of(*one, small::batch()).backward();
      small::zero_grad(**one);
      const auto third = (*one)->layers.back();
      (*one)->layers.pop_back();
      small::loss_of(*one, small::batch(1)).backward();
      CHECK_FALSE(third->linear->weight.grad().defined());
      (*one)->layers.push_back(third);
      small::loss_of(*one, small::batch(2)).backward();
    }
    CHECK(small::same_gradients(*net, *whole, rank.size, rank.rank));
  });
}

TEST_CASE("a layer that runs twice in one forward") {
  compare_on_two([](small::Net& net) {
    net->layers.push_back(net->layers[0]);
    for (int i = 0; i < 2; ++i) small::loss_of(net, small::batch(i)).backward();
    net->layers.pop_back();
  });
}

TEST_CASE("a graph may outlive the model, and backward through it still works") {
  on_ranks(2, [](const Rank& rank) {
    join(rank);
    small::Net whole;
    small::loss_of(whole, small::batch()).backward();
    at::Tensor loss, weight;
    {
      small::Net net;
      small::shard(net, {.reshard_after_forward = false});
      weight = net->layers[0]->linear->weight;
      loss = small::loss_of(net, small::batch());
    }
    loss.backward();
    CHECK(at::equal(weight.grad(), small::part(whole->layers[0]->linear->weight.grad(), rank.size, rank.rank)));
  });
}

// --- Hooks on gradients --------------------------------------------------------------------------------------------

TEST_CASE("a hook after accumulation runs once per backward, with the shard's reduced gradient") {
  on_ranks(2, [](const Rank& rank) {
    join(rank);
    small::Net net, whole;
    std::vector<nn::HookHandle> handles;
    std::vector<at::Tensor> seen;
    const auto hear = [&](const at::Tensor& parameter) {
      handles.push_back(nn::register_post_accumulate_grad_hook(
          parameter, [&](const at::Tensor& tensor) { seen.push_back(tensor.grad().clone()); }));
    };
    hear(net->layers[0]->linear->weight);  // Before and after sharding.
    auto module = small::shard(net);
    hear(net->head->weight);
    for (int i = 0; i < 3; ++i) {
      module.set_requires_gradient_sync(i != 1);
      small::loss_of(net, small::batch(i)).backward();
      small::loss_of(whole, small::batch(i)).backward();
      CHECK(seen.size() == (i == 2 ? 4 : 2));
      if (i > 0) continue;
      small::zero_grad(*net);
      small::zero_grad(*whole);
    }
    CHECK(at::equal(seen[2], small::part(whole->head->weight.grad(), rank.size, rank.rank)));
    CHECK(at::equal(seen[3], small::part(whole->layers[0]->linear->weight.grad(), rank.size, rank.rank)));
    for (auto& handle : handles) handle.remove();
    small::loss_of(net, small::batch()).backward();
    CHECK(seen.size() == 4);
  });
}

TEST_CASE("an optimizer that steps in backward trains like one that steps after it") {
  on_ranks(2, [](const Rank& rank) {
    join(rank);
    small::Net net, whole;
    small::shard(net);
    for (const auto& parameter : net->parameters()) {
      nn::register_post_accumulate_grad_hook(parameter, [](const at::Tensor& tensor) {
        const at::NoGradGuard no_grad;
        tensor.sub_(tensor.grad(), 0.1);
        tensor.mutable_grad() = at::Tensor();
      });
    }
    for (int i = 0; i < 4; ++i) {
      small::loss_of(net, small::batch(i)).backward();
      small::loss_of(whole, small::batch(i)).backward();
      small::step(*whole);
      small::zero_grad(*whole);
    }
    CHECK(small::same_parameters(*net, *whole, rank.size, rank.rank));
    for (const auto& parameter : net->parameters()) CHECK_FALSE(parameter.grad().defined());
  });
}

TEST_CASE("a tensor hook on a parameter sees this rank's whole gradient before the reduction") {
  on_ranks(2, [](const Rank& rank) {
    join(rank);
    small::Net net;
    small::shard(net);
    std::vector<std::int64_t> rows;
    nn::register_tensor_hook(net->layers[0]->linear->weight, [&](const at::Tensor& gradient) {
      rows.push_back(gradient.size(0));
      return at::Tensor();
    });
    small::loss_of(net, small::batch(rank.rank)).backward();
    CHECK(rows == std::vector<std::int64_t>{5});
  });
}
