#include <ATen/Functions.h>
#include <doctest/doctest.h>

#include <stdexcept>
#include <string>

#include "nn/error_text.h"
#include "nn/recording.h"
#include "plimsoll/nn/checkpoint/checkpoint.h"
#include "plimsoll/nn/checkpoint/selective_checkpoint.h"

namespace nn = plimsoll::nn;

TEST_CASE("an exception in the first run restores hooks, contexts and gradients") {
  const at::Tensor x = at::ones({4}).requires_grad_();
  CHECK_THROWS(nn::checkpoint_with(
      {.policy = nn::save_operators({"aten::sin"})},
      [](const at::Tensor& x) -> at::Tensor {
        x.sin();
        throw std::runtime_error("no");
      },
      x));
  x.exp().sum().backward();
  CHECK(at::equal(x.grad(), x.detach().exp()));
}

TEST_CASE("an exception in recomputation reaches the caller of backward, and the next pass works") {
  const at::Tensor x = at::ones({4}).requires_grad_();
  int runs = 0;
  const at::Tensor y = nn::checkpoint(
      [&](const at::Tensor& x) {
        if (++runs == 2) throw std::runtime_error("not now");
        return x.exp();
      },
      x);
  CHECK(error_text([&] { y.sum().backward({}, true); }) == "not now");
  CHECK_FALSE(nn::recomputing());
  y.sum().backward();
  CHECK(at::equal(x.grad(), x.detach().exp()));
}

TEST_CASE("a recomputed tensor of another shape is an error with its number and both shapes") {
  int runs = 0;
  const at::Tensor x = at::ones({4}).requires_grad_();
  const at::Tensor y = nn::checkpoint(
      [&](const at::Tensor& x) { return (runs++ == 0 ? x.expand({2, 4}) : x.expand({3, 4})).sin().sum(); }, x);
  const std::string message = error_text([&] { y.backward(); });
  CHECK(message.find("made different tensors than the first run") != std::string::npos);
  CHECK(message.find("tensor 0: [2, 4] Float on cpu first, [3, 4] Float on cpu recomputed") != std::string::npos);
}

TEST_CASE("without the determinism check a recomputed tensor of another dtype passes") {
  for (const bool check : {true, false}) {
    int runs = 0;
    const at::Tensor x = at::ones({4}).requires_grad_();
    const at::Tensor y = nn::checkpoint_with(
        {.determinism_check = check},
        [&](const at::Tensor& x) {
          const auto factor = at::ones({4}, runs++ == 0 ? at::kFloat : at::kHalf);
          return x * factor;
        },
        x);
    CHECK(error_text([&] { y.sum().backward(); }).empty() == !check);
  }
}

TEST_CASE("a recomputation that saves fewer tensors is an error with both counts") {
  int runs = 0;
  const at::Tensor x = at::ones({4}).requires_grad_();
  const at::Tensor y =
      nn::checkpoint([&](const at::Tensor& x) { return runs++ == 0 ? x.sin().sin().sin() : x.sin(); }, x);
  CHECK_THROWS_AS(y.sum().backward({}, true), nn::CheckpointError);
  runs = 1;
  CHECK(error_text([&] { y.sum().backward(); }).find("saved 1 tensors for backward, the first run 3") !=
        std::string::npos);
}

TEST_CASE("a recomputation that saves more tensors is an error without early stop") {
  int runs = 0;
  const at::Tensor x = at::ones({4}).requires_grad_();
  const at::Tensor y = nn::checkpoint_with(
      {.early_stop = false}, [&](const at::Tensor& x) { return runs++ == 0 ? x.sin() : x.sin().sin(); }, x);
  CHECK(error_text([&] { y.sum().backward(); }).find("saved more tensors for backward than the 1 of the first run") !=
        std::string::npos);
}

TEST_CASE("unpacking a saved tensor twice in one pass is an error") {
  const at::Tensor x = at::ones({4}).requires_grad_();
  const at::Tensor y = nn::checkpoint([](const at::Tensor& x) { return nn::test::UnpacksTwice::apply(x); }, x);
  CHECK(error_text([&] { y.sum().backward(); }).find("unpacked twice in one backward pass") != std::string::npos);
}

TEST_CASE("context_fn and policy together are an error") {
  const at::Tensor x = at::ones({4}).requires_grad_();
  const nn::CheckpointOptions options{.context_fn = [] { return nn::CheckpointContexts(); },
                                      .policy = nn::save_operators({"aten::mm"})};
  CHECK(error_text([&] {
          nn::checkpoint_with(options, [](const at::Tensor& x) { return x.sin(); }, x);
        }).find("either context_fn or policy, found both") != std::string::npos);
}

TEST_CASE("an argument changed in place between the runs is torch's error") {
  at::Tensor x = at::ones({4}).requires_grad_();
  at::Tensor hidden = x * 2;
  const at::Tensor y = nn::checkpoint([](const at::Tensor& x) { return x.sin(); }, hidden);
  hidden.add_(1);
  CHECK(error_text([&] { y.sum().backward(); }).find("modified by an inplace operation") != std::string::npos);
}
