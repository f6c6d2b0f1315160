#include <ATen/core/Dict.h>
#include <ATen/core/List.h>
#include <doctest/doctest.h>
#include <torch/nn/modules/container/moduledict.h>
#include <torch/optim/sgd.h>

#include <array>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "plimsoll/nn/optim/hooked_optimizer.h"
#include "plimsoll/nn/optim/sgd.h"
#include "plimsoll/tracker/mem_tracker.h"
#include "tracker/looking.h"
#include "tracker/models.h"

namespace plimsoll::test_track_external {

namespace {

constexpr std::int64_t kParameters = (16 * 8 + 16 + 4 * 16 + 4) * 4;  // of MLP(8, 16, 4)

at::Tensor bytes(std::int64_t count) { return at::empty({count}, at::kByte); }

struct PlainImpl : torch::nn::Module {
  at::Tensor forward(const at::Tensor& x) { return x; }
};

}  // namespace

// Everything here is made before the tracker, so that only what is registered can be found.

TEST_CASE("modules are found as holders, objects, shared pointers, and in containers") {
  models::MLP one(8, 16, 4), two(8, 16, 4), three(8, 16, 4);
  torch::nn::ModuleList list(models::MLP(8, 16, 4), models::MLP(8, 16, 4));
  torch::nn::ModuleDict dict;
  dict->update({{"six", models::MLP(8, 16, 4).ptr()}});
  MemTracker tracker;
  tracker.track_external(one);
  CHECK(bytes_of(tracker, "Parameter") == kParameters);
  tracker.track_external(one, *two, three.ptr());
  CHECK(bytes_of(tracker, "Parameter") == 3 * kParameters);
  tracker.track_external(std::vector{one.ptr()}, list, dict);
  CHECK(bytes_of(tracker, "Parameter") == 6 * kParameters);
  CHECK(total(tracker) == 6 * kParameters);
}

TEST_CASE("a module's buffers and gradients are registered with it") {
  models::ConvNet model;
  model(at::ones({1, 3, 8, 8})).sum().backward();
  MemTracker tracker;
  tracker.track_external(model);
  const auto now = tracker.snapshot().at("cpu");
  CHECK(now["Parameter"] == (24 * 3 * 9 + 24 + 24 + 24 + 960 + 10) * 4);
  CHECK(now["Gradient"] == now["Parameter"]);
  CHECK(now["Buffer"] == (24 + 24) * 4 + 8);
  CHECK(now["Other"] == 0);
}

TEST_CASE("tensors are found in containers of every kind, and are Other") {
  const std::vector<at::Tensor> vector{bytes(1), bytes(2)};
  const std::map<std::string, at::Tensor> map{{"a", bytes(4)}, {"b", bytes(8)}};
  const std::unordered_map<int, std::vector<at::Tensor>> nested{{1, {bytes(16)}}, {2, {bytes(32), at::Tensor()}}};
  const auto tuple = std::tuple(bytes(64), std::pair(bytes(128), std::optional(bytes(256))));
  const std::array<at::Tensor, 1> array{bytes(512)};
  const std::list<at::Tensor> list{bytes(1024)};
  const auto pointer = std::make_unique<at::Tensor>(bytes(2048));
  torch::OrderedDict<std::string, at::Tensor> dict;
  dict.insert("x", bytes(4096));
  auto tensor = bytes(8192);
  MemTracker tracker;
  tracker.track_external(vector, map, nested, tuple, array, list, pointer, dict, &tensor);
  CHECK(bytes_of(tracker, "Other") == 16383);
  CHECK(total(tracker) == 16383);
  tracker.track_external(tensor.view({2, 4096}));
  CHECK(total(tracker) == 16383);
}

TEST_CASE("an unknown type of argument is not skipped silently") {
  MemTracker tracker;
  std::shared_ptr<nn::Hooked<models::MLPImpl>> no_module;
  tracker.track_external(nullptr, std::nullopt, at::Tensor(), models::MLP(nullptr), no_module,
                         std::optional<at::Tensor>(), c10::IValue(), c10::IValue(at::Tensor()),
                         std::vector<at::Tensor>());
  CHECK(now(tracker) == kNothing);
}

TEST_CASE("the state of optimizers is found, ours and torch's own") {
  models::MLP one(8, 16, 4), two(8, 16, 4), three(8, 16, 4);
  nn::SGD ours(one->parameters(), {.lr = 0.1, .momentum = 0.9});
  torch::optim::SGD stock(two->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  nn::HookedOptimizer<torch::optim::SGD> hooked(three->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  (one(at::ones({2, 8})) + two(at::ones({2, 8})) + three(at::ones({2, 8}))).sum().backward();
  ours.step();
  stock.step();
  hooked.step();
  const auto pointer = std::make_unique<nn::SGD>(one->parameters(), nn::SGDOptions{.lr = 0.1});
  MemTracker tracker;
  tracker.track_external(ours);
  CHECK(bytes_of(tracker, "Optstate") == kParameters);
  tracker.track_external(stock, hooked, pointer);
  CHECK(bytes_of(tracker, "Optstate") == 3 * kParameters);
  CHECK(total(tracker) == 3 * kParameters);
}

TEST_CASE("tensors are found in IValues") {
  c10::List<at::Tensor> list({bytes(1), bytes(2)});
  c10::Dict<std::string, at::Tensor> dict;
  dict.insert("a", bytes(4));
  const c10::IValue tuple(std::tuple(bytes(8), list, dict));
  const c10::IValue alone(bytes(16));
  MemTracker tracker;
  tracker.track_external(tuple, alone);
  CHECK(bytes_of(tracker, "Other") == 31);
}

TEST_CASE("a value without tensors is an error, and the message says the expected types") {
  MemTracker tracker;
  CHECK_THROWS_WITH_AS(
      tracker.track_external(c10::IValue(3)),
      doctest::Contains("track_external was given a value of type Int, which has no memory to track. It "
                        "takes modules, optimizers and tensors, and containers of them."),
      c10::TypeError);
  CHECK_THROWS_WITH_AS(tracker.track_external(c10::IValue(std::tuple(bytes(1), std::string("x")))),
                       doctest::Contains("a value of type String"), c10::TypeError);
}

TEST_CASE("a module without hooks is an error, and the message says how to declare it") {
  MemTracker tracker;
  const auto expected = doctest::Contains(
      "found Plain, which has no hooks. Declare it with hooks: TORCH_MODULE_IMPL(Plain, "
      "plimsoll::nn::Hooked<PlainImpl>)");
  CHECK_THROWS_WITH_AS(tracker.track_external(PlainImpl()), expected, c10::Error);
  CHECK_THROWS_WITH_AS(tracker.track_external(std::make_shared<PlainImpl>()), expected, c10::Error);
  CHECK_THROWS_WITH_AS(tracker.track_external(torch::nn::ModuleList(std::make_shared<PlainImpl>())), expected,
                       c10::Error);
}

}  // namespace plimsoll::test_track_external
