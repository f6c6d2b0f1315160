#include <ATen/Functions.h>
#include <doctest/doctest.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <vector>

#include "nn/error_text.h"
#include "nn/recording.h"
#include "plimsoll/nn/dispatch_mode.h"

namespace nn = plimsoll::nn;
using plimsoll::nn::test::CallLog;
using Names = std::vector<std::string>;

namespace {

struct Named final : nn::DispatchMode {
  Named(Names& log, std::string name) : log(log), name(std::move(name)) {}
  void call(const c10::OperatorHandle& op, torch::jit::Stack& stack) override {
    log.push_back(name + op.operator_name().name.substr(4));
    op.callBoxed(&stack);
  }
  Names& log;
  std::string name;
};

}  // namespace

TEST_CASE("a mode above autograd sees the original call, one below it sees calls to the backend") {
  const at::Tensor x = at::ones({2, 2}).requires_grad_();
  Names log;
  Named above(log, "above");
  Named below(log, "below");
  {
    const nn::DispatchModeScope first(nn::ModeLevel::kAboveAutograd, above);
    const nn::DispatchModeScope second(nn::ModeLevel::kBelowAutograd, below);
    at::linear(x, x, {});
  }
  CHECK(log == Names{"above::linear", "below::t", "below::mm"});
}

TEST_CASE("the inner of nested modes sees a call first, and only the outer one sees calls that a mode makes") {
  struct Doubling final : nn::DispatchMode {
    void call(const c10::OperatorHandle& op, torch::jit::Stack& stack) override {
      op.callBoxed(&stack);
      if (op.operator_name().name == "aten::neg") stack.back() = stack.back().toTensor().neg().mul(-2);
    }
  } doubling;
  CallLog outer;
  const nn::DispatchModeScope scope(nn::ModeLevel::kBelowAutograd, doubling);
  const at::Tensor x = at::ones({1});
  CHECK(at::neg(x).item<float>() == -2);
  CHECK(std::ranges::count(outer.names, "aten::neg") == 2);
  CHECK(std::ranges::count(outer.names, "aten::mul") == 1);
}

TEST_CASE("autograd works below a mode") {
  const at::Tensor x = at::full({2}, 3.0).requires_grad_();
  const CallLog log;
  x.sin().sum().backward();
  CHECK(at::equal(x.grad(), x.detach().cos()));
  CHECK(std::ranges::count(log.names, "aten::sin") == 1);
  CHECK(std::ranges::count(log.names, "aten::cos") == 2);  // One of backward, one of the check.
}

TEST_CASE("a mode that throws is active time for the next call") {
  struct Refusing final : nn::DispatchMode {
    void call(const c10::OperatorHandle& op, torch::jit::Stack& stack) override {
      if (op.operator_name().name == "aten::neg") throw std::runtime_error("no");
      op.callBoxed(&stack);
    }
  } refusing;
  const at::Tensor x = at::ones({1});
  const nn::DispatchModeScope scope(nn::ModeLevel::kBelowAutograd, refusing);
  CHECK_THROWS_AS(at::neg(x), std::runtime_error);
  CHECK(at::abs(x).item<float>() == 1);
  CHECK_THROWS_AS(at::neg(x), std::runtime_error);
}

TEST_CASE("autograd's threads, which inherit the scope's key but not its modes, compute normally") {
  if (!at::globalContext().hasCUDA()) return;
  const at::Tensor x = at::ones({2, 2}, at::kCUDA).requires_grad_();
  const CallLog log;
  x.mm(x).sum().backward();
  CHECK(x.grad().defined());
}

TEST_CASE("a mode for backward sees the calls of autograd's threads for a scope") {
  if (!at::globalContext().hasCUDA()) return;
  struct Counting final : nn::DispatchMode {
    std::atomic<int> products = 0;
    void call(const c10::OperatorHandle& op, torch::jit::Stack& stack) override {
      if (op.operator_name().name == "aten::mm") ++products;
      op.callBoxed(&stack);
    }
  } counting;
  const at::Tensor x = at::ones({2, 2}, at::kCUDA).requires_grad_();
  {
    const nn::DispatchModeScope here(nn::ModeLevel::kBelowAutograd, counting);
    const nn::BackwardModeScope backward(counting);
    x.mm(x).sum().backward();
    CHECK(counting.products == 3);
  }
  x.mm(x).sum().backward();
  CHECK(counting.products == 3);
}

TEST_CASE("a dispatch key that another library uses is refused") {
  const std::string message = error_text([] { nn::require_free_key(c10::DispatchKey::BackendSelect); });
  CHECK(message.find("Expected the dispatch key BackendSelect to be free for dispatch modes, but another library") !=
        std::string::npos);
}
