#include <doctest/doctest.h>

#include <map>
#include <string>

#include "plimsoll/nn/checkpoint/selective_checkpoint.h"
#include "plimsoll/tracker/mem_tracker.h"
#include "tracker/looking.h"
#include "tracker/models.h"

namespace plimsoll {

namespace {

constexpr std::int64_t kRows = 3, kDim = 16, kBytes = kRows * kDim * 4;

/// Without the state of the random numbers, which is memory too.
const nn::CheckpointOptions kWhole{.preserve_rng_state = false, .early_stop = false};

/// x -> exp(x) -> sin(.) -> cos(.): each saves its input or its result for backward, and none has hidden temporaries.
struct WavesImpl : torch::nn::Module {
  std::function<void()> in_between;
  at::Tensor forward(const at::Tensor& x) {
    auto y = at::exp(x);
    y = at::sin(y);
    if (in_between) in_between();
    return at::cos(y);
  }
};
TORCH_MODULE_IMPL(Waves, nn::Hooked<WavesImpl>);

struct OuterImpl : torch::nn::Module {
  Waves inner{nullptr};
  bool nested = false;
  OuterImpl() { inner = register_module("inner", Waves()); }
  at::Tensor forward(const at::Tensor& x) {
    auto y = at::exp(x);
    if (nested) {
      y = nn::checkpoint_with(kWhole, [this](const at::Tensor& z) { return inner->forward(z); }, y);
    } else {
      y = inner(y);
    }
    return at::sin(y);
  }
};
TORCH_MODULE_IMPL(Outer, nn::Hooked<OuterImpl>);

std::size_t calls(MemTracker& tracker, const std::string& fqn, ModuleState state) {
  const auto stats = tracker.module_stats(fqn);
  const auto found = stats.snapshots.find(state);
  return found == stats.snapshots.end() ? 0 : found->second.size();
}

}  // namespace

TEST_CASE("recomputed results are Activation, and gradients of activations are Temp") {
  MemTracker tracker;
  Waves model;
  const auto x = at::ones({kRows, kDim}).requires_grad_();
  std::map<bool, std::int64_t> activation, temp;
  model->in_between = [&] {
    activation[tracker.is_bw()] = bytes_of(tracker, "Activation");
    temp[tracker.is_bw()] = bytes_of(tracker, "Temp");
  };
  const auto scope = tracker.enter();
  auto y = nn::checkpoint_with(kWhole, [&](const at::Tensor& input) { return model->forward(input); }, x);
  CHECK(activation[false] == kBytes);                // sin(…) alone: the graph keeps nothing.
  CHECK(bytes_of(tracker, "Activation") == kBytes);  // The result alone.
  y.backward(at::ones({kRows, kDim}));
  // In recomputation: the result, what backward was given, and exp(…) and sin(…) again, which backward needs.
  CHECK(activation[true] == 4 * kBytes);
  CHECK(temp[true] == 0);
  CHECK(bytes_of(tracker, "Temp") == kBytes);  // The gradient of x, which is not a parameter.
  CHECK(calls(tracker, "Waves", ModuleState::kPreForward) == 1);
  CHECK(calls(tracker, "Waves", ModuleState::kPreForwardAC) == 1);
  CHECK(calls(tracker, "Waves", ModuleState::kPostForwardAC) == 1);
  CHECK(calls(tracker, "Waves", ModuleState::kPreBackward) == 1);
  CHECK(tracker.parents() == std::set<std::string>{"Global"});
}

TEST_CASE("modules are the same after a recomputation that stops early") {
  MemTracker tracker;
  Waves model;
  const auto x = at::ones({kRows, kDim}).requires_grad_();
  const auto scope = tracker.enter();
  auto y = nn::checkpoint_with(
      {.preserve_rng_state = false}, [&](const at::Tensor& input) { return model->forward(input); }, x);
  y.sum().backward();
  CHECK(calls(tracker, "Waves", ModuleState::kPreForwardAC) == 1);
  CHECK(calls(tracker, "Waves", ModuleState::kPostForwardAC) == 1);
  CHECK(tracker.parents() == std::set<std::string>{"Global"});
}

TEST_CASE("nested checkpoints recompute activations at every level") {
  MemTracker tracker;
  Outer model;
  model->nested = true;
  const auto x = at::ones({kRows, kDim}).requires_grad_();
  std::vector<std::int64_t> temp, activation;
  model->inner->in_between = [&] {
    if (!tracker.is_bw()) return;
    temp.push_back(bytes_of(tracker, "Temp"));
    activation.push_back(bytes_of(tracker, "Activation"));
  };
  const auto scope = tracker.enter();
  auto y = nn::checkpoint_with(kWhole, [&](const at::Tensor& input) { return model->forward(input); }, x);
  const auto seed = at::ones({kRows, kDim});
  y.backward(seed);
  // Twice: with the outer checkpoint, with a graph that holds nothing of it, and by itself. Then the gradient of sin is
  // there.
  CHECK(calls(tracker, "Outer.inner", ModuleState::kPreForwardAC) == 2);
  CHECK(calls(tracker, "Outer.inner", ModuleState::kPostForwardAC) == 2);
  CHECK(calls(tracker, "Outer", ModuleState::kPreForwardAC) == 1);
  REQUIRE(temp.size() == 2);
  CHECK(temp[0] == 0);
  CHECK(activation[0] == 4 * kBytes);  // The result, the seed, exp(…) of the outer, sin(…) of the inner.
  CHECK(temp[1] == kBytes);            // The gradient of the inner's result.
}

TEST_CASE("selective checkpoints keep the results of their policy as Activation") {
  MemTracker tracker;
  Waves model;
  const auto x = at::ones({kRows, kDim}).requires_grad_();
  const auto scope = tracker.enter();
  auto y = nn::checkpoint_with(
      {.preserve_rng_state = false, .policy = nn::save_operators({"aten::exp"})},
      [&](const at::Tensor& input) { return model->forward(input); }, x);
  CHECK(bytes_of(tracker, "Activation") == 2 * kBytes);  // The result, and exp(x).
  std::int64_t temp = -1;
  tracker.register_user_hooks({.pre_forward = [&](auto&, auto&) { temp = bytes_of(tracker, "Temp"); }});
  y.sum().backward();
  CHECK(temp == 0);
  CHECK(calls(tracker, "Waves", ModuleState::kPreForwardAC) == 1);
  CHECK(bytes_of(tracker, "Activation") == kBytes);
}

}  // namespace plimsoll
