#include <ATen/Functions.h>
#include <doctest/doctest.h>
#include <torch/nn/modules/linear.h>

#include <algorithm>
#include <memory>
#include <sstream>

#include "nn/recording.h"
#include "plimsoll/nn/modules.h"

namespace nn = plimsoll::nn;

TEST_CASE("Linear has the initial values of torch::nn::Linear") {
  at::manual_seed(5);
  nn::Linear ours(6, 4);
  at::manual_seed(5);
  torch::nn::Linear theirs(6, 4);
  CHECK(at::equal(ours->weight, theirs->weight));
  CHECK(at::equal(ours->bias, theirs->bias));
}

TEST_CASE("Linear is one operator with the bias for an input of three dimensions, as in Python") {
  nn::Linear linear(6, 4);
  const at::Tensor x = at::randn({2, 3, 6});
  nn::test::CallLog log;
  const at::Tensor y = linear(x);
  CHECK(std::ranges::count(log.names, "aten::addmm") == 1);
  CHECK(std::ranges::count(log.names, "aten::add_") == 0);
  CHECK(at::equal(y, at::linear(x, linear->weight, linear->bias)));
}

TEST_CASE("Linear without bias has one parameter") {
  nn::Linear linear(torch::nn::LinearOptions(6, 4).bias(false));
  CHECK(linear->parameters().size() == 1);
  CHECK(linear(at::ones({6})).sizes() == at::IntArrayRef({4}));
}

TEST_CASE("Linear prints and clones") {
  nn::Linear linear(6, 4);
  std::ostringstream text;
  text << *linear;
  CHECK(text.str() == "plimsoll::nn::Linear(in_features=6, out_features=4, bias=true)");
  const auto copy = std::dynamic_pointer_cast<nn::Linear::Impl>(linear->clone());
  REQUIRE(copy);
  CHECK(at::equal(copy->weight, linear->weight));
  CHECK_FALSE(copy->weight.is_same(linear->weight));
}
