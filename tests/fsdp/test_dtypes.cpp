#include <ATen/Functions.h>
#include <doctest/doctest.h>

#include <cmath>

#include "fsdp/join.h"
#include "fsdp/small_net.h"
#include "plimsoll/fsdp/clip_grad_norm.h"

// Parameters of several dtypes in one group, and norms over the shards of all ranks.

using namespace plimsoll;
using ranks::on_ranks;
using ranks::Rank;
using small::join;

namespace {

/// A table of whole numbers without a gradient, and weights.
struct LookupImpl : torch::nn::Module {
  at::Tensor table, weight;
  LookupImpl() {
    table = register_parameter("table", at::arange(10).view({5, 2}), /*requires_grad=*/false);
    weight = register_parameter("weight", at::arange(15).to(at::kFloat).view({5, 3}));
  }
  at::Tensor forward(at::Tensor x) {
    seen = table.clone();
    return (x * weight).sum() * table.sum();
  }
  at::Tensor seen;
};
TORCH_MODULE_IMPL(Lookup, nn::Hooked<LookupImpl>);

}  // namespace

TEST_CASE("integer parameters are gathered together with parameters that are cast") {
  on_ranks(2, [](const Rank& rank) {
    join(rank);
    Lookup lookup;
    fsdp::fully_shard(lookup, {.mesh = small::cpu_mesh(),
                               .reshard_after_forward = true,
                               .mp_policy = {.param_dtype = at::kBFloat16, .reduce_dtype = at::kFloat}});
    lookup(at::ones({5, 3})).backward();
    CHECK(at::equal(lookup->seen, at::arange(10).view({5, 2})));
    CHECK((lookup->table.scalar_type() == at::kLong));
    CHECK_FALSE(lookup->table.grad().defined());
    CHECK((lookup->weight.grad().scalar_type() == at::kFloat));
    CHECK(at::equal(lookup->weight.grad(), at::full_like(lookup->weight.grad(), 45)));
    distributed::destroy_process_group();
  });
}

TEST_CASE("the norm of gradients is that of the whole model, and each rank scales its shards by it") {
  on_ranks(4, [](const Rank& rank) {
    join(rank);
    for (const double order : {2.0, 3.0, 1.0, HUGE_VAL}) {
      small::Net whole, net;
      small::shard(net);
      small::loss_of(whole, small::batch()).backward();
      small::loss_of(net, small::batch()).backward();
      const nn::ClipGradNormOptions options{.norm_type = order};
      const auto expected = nn::clip_grad_norm_(whole->parameters(), 0.1, options);
      const auto found = fsdp::clip_grad_norm_(net->parameters(), 0.1, options);
      CHECK(at::allclose(found, expected, 1e-6, 0));
      const auto a = net->parameters(), b = whole->parameters();
      for (std::size_t i = 0; i < b.size(); ++i) {
        CHECK(at::allclose(a[i].grad(), small::part(b[i].grad(), rank.size, rank.rank), 1e-5, 1e-7));
      }
    }
    distributed::destroy_process_group();
  });
}
