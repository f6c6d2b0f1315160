#include <doctest/doctest.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/any.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "nn/error_text.h"
#include "nn/recording.h"
#include "plimsoll/nn/hooks/hooked.h"
#include "plimsoll/nn/modules.h"

namespace nn = plimsoll::nn;
using torch::nn::Module;

namespace {

// Arguments and results of many kinds; `forward` returns its tensors in order.
struct MixedImpl : torch::nn::Module {
  std::tuple<at::Tensor, std::vector<at::Tensor>, std::map<std::string, at::Tensor>, int> forward(
      at::Tensor a, const std::optional<at::Tensor>& b, const std::vector<at::Tensor>& c,
      std::pair<at::Tensor, std::map<std::string, at::Tensor>> d, int number, std::string& text,
      std::unique_ptr<int> owned) const noexcept {
    text += "!";
    return {
        a, {b.value_or(at::Tensor()), c.at(0), c.at(1)}, {{"x", d.first}, {"y", d.second.at("k")}}, number + *owned};
  }
};
TORCH_MODULE_IMPL(Mixed, nn::Hooked<MixedImpl>);

struct VoidImpl : torch::nn::Module {
  void forward(at::Tensor& x) { x = x + 1; }
};
TORCH_MODULE_IMPL(Void, nn::Hooked<VoidImpl>);

// Takes its argument by value and drops it at once.
struct DroppingImpl : torch::nn::Module {
  at::Tensor forward(at::Tensor x) {
    const auto* storage = x.storage().unsafeGetStorageImpl();
    const auto weak = c10::weak_intrusive_ptr<c10::StorageImpl>(x.storage().getWeakStorageImpl());
    x = at::zeros({1});
    argument_alive = !weak.expired();
    static_cast<void>(storage);
    return x;
  }
  bool argument_alive = false;
};
TORCH_MODULE_IMPL(Dropping, nn::Hooked<DroppingImpl>);

struct ScaleImpl : torch::nn::Module {
  at::Tensor forward(const at::Tensor& x, double factor = 3.0, const std::optional<at::Tensor>& bias = std::nullopt) {
    return bias ? x * factor + *bias : x * factor;
  }

 protected:
  FORWARD_HAS_DEFAULT_ARGS({1, torch::nn::AnyValue(3.0)},
                           {2, torch::nn::AnyValue(std::optional<at::Tensor>(std::nullopt))})
};
TORCH_MODULE_IMPL(Scale, nn::Hooked<ScaleImpl>);

struct UndeclaredImpl : torch::nn::Module {
  at::Tensor forward(const at::Tensor& x, double factor = 3.0) const { return x * factor; }
};
TORCH_MODULE_IMPL(Undeclared, nn::Hooked<UndeclaredImpl>);

struct NetworkImpl : torch::nn::Cloneable<NetworkImpl> {
  NetworkImpl() { reset(); }
  void reset() override {
    first = register_module("first", nn::Linear(4, 4));
    second = register_module("second", nn::Linear(4, 4));
  }
  at::Tensor forward(const at::Tensor& x) { return second(first(x).relu()); }
  nn::Linear first = nullptr;
  nn::Linear second = nullptr;
};
TORCH_MODULE_IMPL(Network, nn::Hooked<NetworkImpl>);

template <class Holder>
int& count_calls(Holder& module) {
  auto count = std::make_shared<int>(0);
  int& counted = *count;
  module->register_forward_pre_hook([count](Module&, nn::Tensors&) { ++*count; });
  return counted;
}

}  // namespace

TEST_CASE("hooks see and replace the tensors of arguments and results of any kind") {
  const auto number = [](float value) { return at::full({1}, value); };
  const auto run = [&](Mixed& module, std::string& text) {
    return module->forward(number(1), number(2), {number(3), number(4)}, {number(5), {{"k", number(6)}}}, 7, text,
                           std::make_unique<int>(1));
  };
  Mixed module;
  std::string text = "text";
  run(module, text);
  CHECK(text == "text!");

  module->register_forward_pre_hook([](Module&, nn::Tensors& arguments) {
    CHECK(arguments.size() == 6);
    float expected = 1;
    for (at::Tensor& argument : arguments) {
      CHECK(argument.template item<float>() == expected++);
      argument = argument * 10;
    }
  });
  module->register_forward_hook([](Module&, nn::Tensors&, nn::Tensors& results) {
    CHECK(results.size() == 6);
    for (at::Tensor& result : results) result = result + 1;
  });
  const auto [a, list, map, sum] = run(module, text);
  CHECK(text == "text!!");
  CHECK(a.item<float>() == 11);
  CHECK(list[0].item<float>() == 21);
  CHECK(list[1].item<float>() == 31);
  CHECK(list[2].item<float>() == 41);
  CHECK(map.at("x").item<float>() == 51);
  CHECK(map.at("y").item<float>() == 61);
  CHECK(sum == 8);
}

TEST_CASE("hooks do not see empty optionals and undefined tensors") {
  Mixed module;
  std::size_t seen = 0;
  module->register_forward_pre_hook([&](Module&, nn::Tensors& arguments) { seen = arguments.size(); });
  std::string text;
  const at::Tensor x = at::ones({1});
  module->forward(at::Tensor(), std::nullopt, {x, at::Tensor()}, {x, {{"k", x}}}, 0, text, std::make_unique<int>(0));
  CHECK(seen == 3);
}

TEST_CASE("a non-constant reference is the caller's object, with and without hooks, and forward may return nothing") {
  Void module;
  at::Tensor x = at::ones({1});
  module->forward(x);
  CHECK(x.item<float>() == 2);
  module->register_forward_pre_hook([](Module&, nn::Tensors& arguments) { arguments[0] = arguments[0] * 10; });
  std::size_t results_seen = 1;
  module->register_forward_hook([&](Module&, nn::Tensors&, nn::Tensors& results) { results_seen = results.size(); });
  module->forward(x);
  CHECK(x.item<float>() == 21);
  CHECK(results_seen == 0);
}

TEST_CASE("an argument taken by value lives until the call returns, with and without hooks") {
  Dropping module;
  module->forward(at::ones({1}));
  CHECK(module->argument_alive);
  module->argument_alive = false;
  count_calls(module);
  module->forward(at::ones({1}));
  CHECK(module->argument_alive);
}

TEST_CASE("hooked modules run in torch's Sequential and in ours, nested, and in AnyModule") {
  nn::Linear linear(2, 2);
  nn::ReLU relu;
  int& linear_calls = count_calls(linear);
  int& relu_calls = count_calls(relu);
  torch::nn::Sequential theirs(linear, relu);
  theirs->forward(at::ones({1, 2}));
  nn::Sequential ours({{"linear", linear}, {"relu", relu}});
  int& our_calls = count_calls(ours);
  ours(at::ones({1, 2}));
  nn::Sequential outer(ours, linear);
  outer->forward(at::ones({1, 2}));
  torch::nn::AnyModule any(linear);
  any.forward(at::ones({1, 2}));
  CHECK(linear_calls == 5);
  CHECK(relu_calls == 3);
  CHECK(our_calls == 2);
  CHECK(ours->named_children().contains("relu"));
}

TEST_CASE("forward_as of a hooked Sequential takes and returns the types of its modules") {
  Scale scale;
  nn::Sequential sequential(scale);
  std::size_t seen = 0;
  sequential->register_forward_pre_hook([&](Module&, nn::Tensors& arguments) { seen = arguments.size(); });
  CHECK(sequential->forward_as<at::Tensor>(at::ones({1}), 5.0).item<float>() == 5);
  CHECK(seen == 1);
}

TEST_CASE("arguments with declared default values may be left out, with hooks, holders, Sequential and AnyModule") {
  Scale module;
  const at::Tensor x = at::ones({1});
  CHECK(module(x).item<float>() == 3);
  int& calls = count_calls(module);
  CHECK(module->forward(x, 2.0).item<float>() == 2);
  CHECK(module->forward(x, 2.0, at::ones({1})).item<float>() == 3);
  torch::nn::AnyModule any(module);
  CHECK(any.forward(x).item<float>() == 3);
  CHECK(any.forward(x, 4.0).item<float>() == 4);
  torch::nn::Sequential sequential(module);
  CHECK(sequential->forward(x).item<float>() == 3);
  CHECK(calls == 5);
}

TEST_CASE("torch's modules with default arguments can be hooked") {
  torch::nn::ModuleHolder<nn::Hooked<torch::nn::ConvTranspose2dImpl>> convolution(
      torch::nn::ConvTranspose2dOptions(1, 1, 2));
  CHECK(convolution(at::ones({1, 1, 2, 2})).sizes() == at::IntArrayRef({1, 1, 3, 3}));
  torch::nn::ModuleHolder<nn::Hooked<torch::nn::MultiheadAttentionImpl>> attention(
      torch::nn::MultiheadAttentionOptions(4, 2));
  std::size_t seen = 0;
  attention->register_forward_hook([&](Module&, nn::Tensors&, nn::Tensors& results) { seen = results.size(); });
  const at::Tensor x = at::ones({3, 1, 4});
  const auto [output, weights] = attention(x, x, x);
  CHECK(output.sizes() == x.sizes());
  CHECK(weights.defined());
  CHECK(seen == 2);
}

TEST_CASE("an undeclared default value is an error that says how to declare it") {
  Undeclared module;
  CHECK(module(at::ones({1}), 2.0).item<float>() == 2);
  const std::string message = error_text([&] { module(at::ones({1})); });
  CHECK(message.find("UndeclaredImpl::forward was left out") != std::string::npos);
  CHECK(message.find("FORWARD_HAS_DEFAULT_ARGS({1, torch::nn::AnyValue(") != std::string::npos);
}

TEST_CASE("a clone is hooked, keeps the hooks of all its modules, and shares no parameter") {
  Network network;
  int& root = count_calls(network);
  int& child = count_calls(network->second);
  const auto copy = std::dynamic_pointer_cast<Network::Impl>(network->clone());
  REQUIRE(copy);
  const at::Tensor x = at::ones({1, 4});
  CHECK(at::equal(copy->forward(x), network->forward(x)));
  CHECK(root == 2);
  CHECK(child == 2);
  CHECK_FALSE(copy->first->weight.is_same(network->first->weight));
  CHECK(copy->first->weight.is_same(copy->named_parameters()["first.weight"]));

  nn::Sequential sequential{nn::Linear(2, 2)};
  int& calls = count_calls(sequential);
  std::dynamic_pointer_cast<nn::Sequential::Impl>(sequential->clone())->forward(at::ones({1, 2}));
  CHECK(calls == 1);
}

TEST_CASE("loss and gradients are bit-equal with and without hooks") {
  const auto train = [](auto&& make) {
    at::manual_seed(1);
    auto first = make(8, 16);
    auto second = make(16, 4);
    const at::Tensor x = at::randn({4, 8});
    const at::Tensor loss = second(first(x).relu()).square().sum();
    return plimsoll::nn::test::backward(loss, {first->weight, first->bias, second->weight, second->bias});
  };
  const auto plain = train([](int in, int out) { return torch::nn::Linear(in, out); });
  const auto hooked = train([](int in, int out) {
    nn::Linear linear(in, out);
    count_calls(linear);
    return linear;
  });
  CHECK(plimsoll::nn::test::same_bits(plain, hooked));
}

TEST_CASE("hooked stock layers have the results of torch's") {
  at::manual_seed(1);
  const at::Tensor image = at::randn({2, 3, 8, 8});
  nn::Sequential hooked(nn::Conv2d(torch::nn::Conv2dOptions(3, 4, 3)), nn::BatchNorm2d(4), nn::GELU(), nn::SiLU(),
                        nn::MaxPool2d(2), nn::AdaptiveAvgPool2d(torch::nn::AdaptiveAvgPool2dOptions(2)), nn::Flatten(),
                        nn::LayerNorm(torch::nn::LayerNormOptions({16})), nn::Linear(16, 2), nn::ReLU(),
                        nn::Dropout(0.5));
  at::manual_seed(1);
  at::randn({2, 3, 8, 8});
  torch::nn::Sequential plain(torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 4, 3)), torch::nn::BatchNorm2d(4),
                              torch::nn::GELU(), torch::nn::SiLU(), torch::nn::MaxPool2d(2),
                              torch::nn::AdaptiveAvgPool2d(torch::nn::AdaptiveAvgPool2dOptions(2)),
                              torch::nn::Flatten(), torch::nn::LayerNorm(torch::nn::LayerNormOptions({16})),
                              torch::nn::Linear(16, 2), torch::nn::ReLU(), torch::nn::Dropout(0.5));
  at::manual_seed(2);
  const at::Tensor expected = plain->forward(image);
  at::manual_seed(2);
  CHECK(at::equal(hooked(image), expected));
  nn::Embedding embedding(5, 3);
  CHECK(embedding(at::zeros({2}, at::kLong)).sizes() == at::IntArrayRef({2, 3}));
}
