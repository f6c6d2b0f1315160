#include <ATen/Functions.h>
#include <doctest/doctest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <memory>
#include <string>
#include <vector>

#include "nn/error_text.h"
#include "plimsoll/nn/hooks/autograd_hooks.h"

namespace nn = plimsoll::nn;
using nn::MultiGradMode;
using Log = std::vector<std::string>;

namespace {

at::Tensor leaf() { return at::ones({2}).requires_grad_(); }

struct MultiGradLog {
  nn::MultiGradHook hook() {
    return [this](const std::vector<at::Tensor>& gradients) {
      std::vector<bool> there;
      for (const auto& gradient : gradients) there.push_back(gradient.defined());
      calls.push_back(there);
    };
  }
  std::vector<std::vector<bool>> calls;
};

}  // namespace

TEST_CASE("a tensor hook sees and replaces the gradient until it is removed, also from within itself") {
  const at::Tensor x = leaf();
  int calls = 0;
  nn::HookHandle handle = nn::register_tensor_hook(x, [&](const at::Tensor& gradient) {
    if (++calls == 2) handle.remove();
    return gradient * 10;
  });
  nn::register_tensor_hook(x, [](const at::Tensor&) { return at::Tensor(); });
  for (int i = 0; i < 3; ++i) x.sum().backward();
  CHECK(calls == 2);
  CHECK(at::equal(x.grad(), at::full({2}, 21.0)));
}

TEST_CASE("hooks of ours and of others on one tensor run in the order of registration") {
  // Like Python's: one object for all of a tensor's hooks, in the node's list at the position of the first.
  struct Others : torch::autograd::FunctionPreHook {
    explicit Others(Log& log) : log(log) {}
    torch::autograd::variable_list operator()(const torch::autograd::variable_list& gradients) override {
      log.emplace_back("theirs");
      return gradients;
    }
    Log& log;
  };
  Log log;
  const auto logged = [&](const char* name) {
    return [&log, name](const at::Tensor&) {
      log.emplace_back(name);
      return at::Tensor();
    };
  };
  const at::Tensor y = leaf() * 2;
  nn::register_tensor_hook(y, logged("first"));
  y.grad_fn()->add_tensor_pre_hook(std::make_unique<Others>(log));
  auto removed = nn::register_tensor_hook(y, logged("removed"));
  nn::register_tensor_hook(y, logged("last"));
  removed.remove();
  y.sum().backward();
  CHECK(log == Log{"first", "theirs", "last"});
}

TEST_CASE("a hook on an operator's result replaces its gradient") {
  const at::Tensor x = leaf();
  const at::Tensor y = x * 2;
  nn::register_tensor_hook(y, [](const at::Tensor& gradient) { return gradient * 10; });
  y.sum().backward();
  CHECK(at::equal(x.grad(), at::full({2}, 20.0)));
}

TEST_CASE("a hook's handle may outlive the tensor") {
  nn::HookHandle handle = nn::register_tensor_hook(leaf(), [](const at::Tensor& gradient) { return gradient; });
  nn::HookHandle other = nn::register_post_accumulate_grad_hook(leaf(), [](const at::Tensor&) {});
  nn::HookHandle multi = nn::register_multi_grad_hook({leaf()}, [](const auto&) {});
  handle.remove();
  other.remove();
  multi.remove();
}

TEST_CASE("a tensor that requires no gradient cannot have a hook") {
  CHECK(error_text([] { nn::register_tensor_hook(at::ones({2, 3}), [](const at::Tensor& g) { return g; }); }) ==
        "Expected a tensor that requires a gradient, found one of shape [2, 3] that does not: its hook would never "
        "run. Call "
        "requires_grad_() on it first.");
}

TEST_CASE("post-accumulate hooks run in order, after accumulation, beside torch's existing hook") {
  struct Native final : torch::autograd::PostAccumulateGradHook {
    explicit Native(Log& log) : log(log) {}
    void operator()(const at::Tensor&) override { log.push_back("native"); }
    Log& log;
  };
  const at::Tensor x = leaf();
  Log log;
  torch::autograd::impl::set_post_acc_grad_hooks(x, std::make_unique<Native>(log));
  auto first = nn::register_post_accumulate_grad_hook(
      x, [&](const at::Tensor& tensor) { log.push_back("first " + std::to_string(tensor.grad().sum().item<int>())); });
  nn::register_post_accumulate_grad_hook(x, [&](const at::Tensor& tensor) {
    log.push_back("second");
    tensor.mutable_grad() = at::Tensor();
  });
  x.sum().backward();
  CHECK_FALSE(x.grad().defined());
  first.remove();
  x.sum().backward();
  CHECK(log == Log{"native", "first 2", "second", "native", "second"});
}

TEST_CASE("only a leaf that requires a gradient can have a post-accumulate hook") {
  const auto add = [](const at::Tensor& tensor) {
    return error_text([&] { nn::register_post_accumulate_grad_hook(tensor, [](const at::Tensor&) {}); });
  };
  CHECK(add(at::ones({2})).find("found a tensor of shape [2] that does not require one") != std::string::npos);
  CHECK(add(leaf() * 2).find("found a tensor of shape [2] that an operator made") != std::string::npos);
}

TEST_CASE("a multi-grad hook runs once per pass, after the gradients of all tensors that the pass reaches") {
  // The example of torch's documentation of register_multi_grad_hook, with its results.
  const at::Tensor a = leaf();
  const at::Tensor b = leaf();
  const at::Tensor c = a * b;
  const at::Tensor d = a * b;
  MultiGradLog log;
  auto handle = nn::register_multi_grad_hook({a, b, c, d}, log.hook());
  c.sum().backward({}, true);
  c.sum().backward({}, true, false, std::vector<at::Tensor>{a});
  CHECK(log.calls == std::vector<std::vector<bool>>{{true, true, true, false}, {true, false, true, false}});
  handle.remove();
  c.sum().backward();
  CHECK(log.calls.size() == 2);
}

TEST_CASE("a multi-grad hook of leaves works in one graph after another") {
  const at::Tensor a = leaf();
  const at::Tensor b = leaf();
  MultiGradLog log;
  nn::register_multi_grad_hook({a, b}, log.hook());
  (a * b).sum().backward();
  (a + b).sum().backward();
  a.sum().backward();
  CHECK(log.calls == std::vector<std::vector<bool>>{{true, true}, {true, true}, {true, false}});
}

TEST_CASE("in mode kAny the first gradient of each pass counts, and tensors without gradient are ignored") {
  const at::Tensor a = leaf();
  const at::Tensor b = leaf();
  MultiGradLog log;
  nn::register_multi_grad_hook({at::ones({2}), a, b}, log.hook(), MultiGradMode::kAny);
  (a * b).sum().backward();
  (a * b).sum().backward();
  CHECK(log.calls == std::vector<std::vector<bool>>{{true}, {true}});
}

TEST_CASE("in mode kAll a tensor without gradient is an error") {
  CHECK(error_text([] {
          nn::register_multi_grad_hook({leaf(), at::ones({3})}, [](const auto&) {});
        }).find("found tensor 1 of shape [3], which does not: leave it out") != std::string::npos);
}

TEST_CASE("a multi-grad hook counts only leaves whose gradient grad() computes") {
  const at::Tensor a = leaf();
  const at::Tensor b = leaf();
  const at::Tensor c = a * 2;
  MultiGradLog log;
  nn::register_multi_grad_hook({a, b, c}, log.hook());
  torch::autograd::grad({(b + c).sum()}, {a, b});
  torch::autograd::grad({(b + c).sum()}, {b});
  torch::autograd::grad({c.sum()}, {a});
  CHECK(log.calls == std::vector<std::vector<bool>>{{true, true, true}, {false, true, false}, {true, false, true}});
}

TEST_CASE("in_backward is true only in hooks, and queued callbacks run at the end of the pass") {
  const at::Tensor x = leaf();
  Log log;
  nn::register_tensor_hook(x, [&](const at::Tensor&) {
    CHECK(nn::in_backward());
    nn::queue_callback([&] { log.push_back("callback"); });
    log.push_back("hook");
    return at::Tensor();
  });
  nn::register_post_accumulate_grad_hook(x, [&](const at::Tensor&) { log.push_back("accumulated"); });
  CHECK_FALSE(nn::in_backward());
  x.sum().backward();
  CHECK_FALSE(nn::in_backward());
  CHECK(log == Log{"hook", "accumulated", "callback"});
  CHECK(error_text([] { nn::queue_callback([] {}); }).find("outside of a backward pass") != std::string::npos);
}
