#include <ATen/Functions.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "nn/error_text.h"
#include "nn/recording.h"
#include "plimsoll/nn/checkpoint/checkpoint.h"
#include "plimsoll/nn/checkpoint/selective_checkpoint.h"

namespace test_selective_checkpoint {

namespace nn = plimsoll::nn;
using plimsoll::nn::test::CallLog;

namespace {

at::Tensor leaf() { return at::full({4, 4}, 0.5).requires_grad_(); }

at::Tensor sin_exp(const at::Tensor& x) { return x.sin().exp().tanh(); }

nn::CheckpointOptions saving(const std::vector<std::string>& names) { return {.policy = nn::save_operators(names)}; }

}  // namespace

TEST_CASE("kept operators do not run time, the others do") {
  const at::Tensor x = leaf();
  const at::Tensor y = nn::checkpoint_with(saving({"aten::sin", "aten::tanh"}), sin_exp, x);
  const CallLog log;
  y.sum().backward();
  CHECK(std::ranges::count(log.names, "aten::sin") == 0);
  CHECK(std::ranges::count(log.names, "aten::exp") == 1);
  CHECK(std::ranges::count(log.names, "aten::tanh") == 0);
}

TEST_CASE("all four policies have their effect, and the policy is called only in forward") {
  using enum nn::CheckpointPolicy;
  for (const auto policy : {kMustSave, kPreferSave, kMustRecompute, kPreferRecompute}) {
    int asked = 0;
    const at::Tensor x = leaf();
    const at::Tensor y = nn::checkpoint_with({.policy =
                                                  [&](const c10::OperatorHandle&, bool is_recompute) {
                                                    CHECK_FALSE(is_recompute);
                                                    asked++;
                                                    return policy;
                                                  }},
                                             sin_exp, x);
    CHECK(asked == 3);
    const CallLog log;
    y.sum().backward();
    CHECK(asked == 3);
    CHECK(std::ranges::count(log.names, "aten::exp") == (policy == kMustSave || policy == kPreferSave ? 0 : 1));
  }
}

TEST_CASE("kept views, lists and operators with several results give the same gradients") {
  const auto function = [](const at::Tensor& x) {
    const auto halves = x.mm(x).t().split(2);
    const auto [values, indices] = halves[0].exp().max(1);
    return values.sin().sum() + halves[1].select(0, 1).square().sum();
  };
  const at::Tensor plain = leaf();
  function(plain).backward();
  const at::Tensor kept = leaf();
  nn::checkpoint_with(saving({"aten::mm", "aten::t", "aten::split.Tensor", "aten::max.dim", "aten::select.int"}),
                      function, kept)
      .backward();
  CHECK(at::equal(plain.grad(), kept.grad()));
}

TEST_CASE("kept results are freed after backward has used them") {
  const at::Tensor x = leaf();
  c10::weak_intrusive_ptr<c10::StorageImpl> kept{c10::intrusive_ptr<c10::StorageImpl>()};
  at::Tensor y = nn::checkpoint_with(
      saving({"aten::sin"}),
      [&](const at::Tensor& x) {
        const at::Tensor hidden = x.sin();
        if (!nn::recomputing()) kept = hidden.storage().getWeakStorageImpl();
        return hidden.exp().sum();
      },
      x);
  CHECK_FALSE(kept.expired());
  y.backward({}, /*retain_graph=*/true);
  CHECK(kept.expired());
}

TEST_CASE("recomputing() is true in a selective recomputation") {
  std::vector<bool> seen;
  nn::checkpoint_with(
      saving({"aten::sin"}),
      [&](const at::Tensor& x) {
        seen.push_back(nn::recomputing());
        return x.sin().exp();
      },
      leaf())
      .sum()
      .backward();
  CHECK(seen == std::vector<bool>{false, true});
}

TEST_CASE("a selective checkpoint inside another, and inside a plain one, gives the same gradients") {
  const auto inner = [](const at::Tensor& x) { return x.sin().exp().mm(x); };
  const at::Tensor plain = leaf();
  inner(inner(plain)).tanh().sum().backward();
  for (const bool outer_selects : {true, false}) {
    const at::Tensor x = leaf();
    const auto outer = [&](const at::Tensor& x) {
      return inner(nn::checkpoint_with(saving({"aten::exp"}), inner, x)).tanh();
    };
    const at::Tensor y = outer_selects ? nn::checkpoint_with(saving({"aten::mm"}), outer, x) : nn::checkpoint(outer, x);
    y.sum().backward();
    CHECK(at::equal(plain.grad(), x.grad()));
  }
}

TEST_CASE("a kept result that was changed in place is an error, unless mutation is allowed") {
  const auto run = [](bool allow) {
    const at::Tensor x = leaf();
    at::Tensor kept;
    const auto contexts = [allow] {
      return nn::create_selective_checkpoint_contexts(nn::save_operators({"aten::sin"}),
                                                      {.allow_cache_entry_mutation = allow});
    };
    const at::Tensor y = nn::checkpoint_with(
        {.context_fn = contexts},
        [&](const at::Tensor& x) {
          const at::Tensor hidden = x.sin();
          if (!nn::recomputing()) kept = hidden;
          return hidden.exp();
        },
        x);
    {
      const at::NoGradGuard no_grad;
      kept.add_(1);
    }
    return error_text([&] { y.sum().backward(); });
  };
  CHECK(run(false).find("A result of aten::sin kept by a selective checkpoint was changed in place") !=
        std::string::npos);
  CHECK(run(true).empty());
}

TEST_CASE("a second backward pass through a selective checkpoint is an error") {
  const at::Tensor y = nn::checkpoint_with(saving({"aten::sin"}), sin_exp, leaf()).sum();
  y.backward({}, /*retain_graph=*/true);
  CHECK(error_text([&] { y.backward(); }).find("A second backward pass reached a selective checkpoint") !=
        std::string::npos);
}

TEST_CASE("a recomputation that calls an operator more often, or another one, is an error") {
  int runs = 0;
  const at::Tensor y = nn::checkpoint_with(
      {.early_stop = false, .policy = nn::save_operators({"aten::sin"})},
      [&](const at::Tensor& x) {
        at::Tensor h = x.sin();
        if (runs++ > 0) h = h.sin();
        return h.exp();
      },
      leaf());
  CHECK(error_text([&] { y.sum().backward({}, true); }).find("called aten::sin 2 times, but the first run 1 times") !=
        std::string::npos);
  runs = 0;
  const at::Tensor z = nn::checkpoint_with(
      saving({"aten::sin"}), [&](const at::Tensor& x) { return (runs++ == 0 ? x.sin() : x.cos()).exp(); }, leaf());
  CHECK(error_text([&] { z.sum().backward(); }).find("called aten::cos 1 times, but the first run 0 times") !=
        std::string::npos);
}

TEST_CASE("an unknown operator name is an error") {
  CHECK(error_text([] { nn::save_operators({"aten::mm", "aten::add"}); }).find("found 'aten::add'") !=
        std::string::npos);
  CHECK(error_text([] { nn::save_operators({"mm"}); }).find("such as 'aten::mm' or 'aten::add.Tensor'") !=
        std::string::npos);
}

}  // namespace test_selective_checkpoint
