#include <ATen/Functions.h>
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "nn/error_text.h"
#include "plimsoll/nn/hooks/saved_tensor_hooks.h"

namespace nn = plimsoll::nn;

namespace {

struct Counts {
  int packed = 0;
  int unpacked = 0;
};

nn::PackHook packing(Counts& counts) {
  return [&counts](const at::Tensor& tensor) {
    counts.packed++;
    return std::any(tensor.detach());
  };
}
nn::UnpackHook unpacking(Counts& counts) {
  return [&counts](const std::any& value) {
    counts.unpacked++;
    return std::any_cast<at::Tensor>(value);
  };
}

}  // namespace

TEST_CASE("each tensor that autograd saves is packed once and unpacked once, and the gradients stay the same") {
  const at::Tensor x = at::full({4}, 0.5).requires_grad_();
  Counts counts;
  at::Tensor y;
  {
    const nn::SavedTensorHooks hooks(packing(counts), unpacking(counts));
    y = x.sin().exp() * x;  // Of sin its argument, of exp its result, of the product both factors.
  }
  CHECK(counts.packed == 4);
  CHECK(counts.unpacked == 0);
  y.sum().backward();
  CHECK(counts.unpacked == 4);
  const at::Tensor plain = x.detach().requires_grad_();
  (plain.sin().exp() * plain).sum().backward();
  CHECK(at::equal(plain.grad(), x.grad()));
}

TEST_CASE("backward uses the result of unpack") {
  const at::Tensor x = at::full({2}, 3.0).requires_grad_();
  at::Tensor y;
  {
    const nn::SavedTensorHooks hooks(
        [](const at::Tensor& tensor) { return std::any(tensor.to(at::kHalf)); },
        [](const std::any& value) { return std::any_cast<at::Tensor>(value).to(at::kFloat) * 10; });
    y = x * x.detach();
  }
  y.sum().backward();
  CHECK(at::equal(x.grad(), at::full({2}, 30.0)));
}

TEST_CASE("only the innermost of nested scopes counts, and nothing is packed outside of scopes") {
  const at::Tensor x = at::ones({4}).requires_grad_();
  Counts outer;
  Counts inner;
  {
    const nn::SavedTensorHooks first(packing(outer), unpacking(outer));
    {
      const nn::SavedTensorHooks second(packing(inner), unpacking(inner));
      x.sin();
    }
    x.sin();
    x.sin();
  }
  x.sin();
  CHECK(inner.packed == 1);
  CHECK(outer.packed == 2);
}

TEST_CASE("an exception in pack reaches the operator's caller and removes the hooks") {
  const at::Tensor x = at::ones({4}).requires_grad_();
  CHECK(error_text([&] {
          const nn::SavedTensorHooks hooks([](const at::Tensor&) -> std::any { throw std::runtime_error("full"); },
                                           [](const std::any&) { return at::Tensor(); });
          x.sin();
        }) == "full");
  x.sin().sum().backward();
}

TEST_CASE("hooks at the call of backward are active in it, also on the threads of a device") {
  for (const at::DeviceType device : {at::kCPU, at::kCUDA}) {
    if (device == at::kCUDA && !at::globalContext().hasCUDA()) continue;
    const at::Tensor x = at::ones({4}, device).requires_grad_();
    const at::Tensor y = x.sin().sum();
    Counts counts;
    {
      const nn::SavedTensorHooks hooks(packing(counts), unpacking(counts));
      y.backward({}, /*retain_graph=*/true, /*create_graph=*/true);
    }
    const int within = counts.packed;
    CHECK(within > 0);
    y.backward({}, /*retain_graph=*/true, /*create_graph=*/true);
    CHECK(counts.packed == within);
    x.mutable_grad() = at::Tensor();  // It refers to its own graph.
  }
}

TEST_CASE("disabled hooks cannot be opened, and open ones cannot be disabled; the error is the given message") {
  Counts counts;
  const auto open = [&] { const nn::SavedTensorHooks hooks(packing(counts), unpacking(counts)); };
  {
    const nn::DisableSavedTensorHooks outer("no hooks in here");
    CHECK(error_text(open) == "no hooks in here");
    {
      const nn::DisableSavedTensorHooks inner("nor here");
      CHECK(error_text(open) == "nor here");
    }
    CHECK(error_text(open) == "no hooks in here");
  }
  CHECK(error_text(open).empty());
  const nn::SavedTensorHooks hooks(packing(counts), unpacking(counts));
  CHECK(error_text([] { const nn::DisableSavedTensorHooks disable("not now"); }) == "not now");
  CHECK(error_text(open).empty());
}

TEST_CASE("an engine that is not torch's own is not replaced") {
  struct ForeignEngine : torch::autograd::Engine {
  } engine;
  const std::string message = error_text([&] { nn::require_replaceable_engine(engine); });
  CHECK(message.find("Expected torch's C++ autograd engine, found ") != std::string::npos);
  CHECK(message.find("ForeignEngine") != std::string::npos);
  CHECK(message.find("torch.utils.checkpoint") != std::string::npos);
  nn::require_replaceable_engine(torch::autograd::Engine::get_base_engine());
}

TEST_CASE("the engine is not replaced during a backward pass") {
  const at::Tensor x = at::ones({4}).requires_grad_();
  std::string message;
  x.register_hook([&](const at::Tensor&) {
    message = error_text([] { nn::require_replaceable_engine(torch::autograd::Engine::get_base_engine()); });
  });
  x.sum().backward();
  CHECK(message.find("first used inside a backward pass") != std::string::npos);
  CHECK(message.find("install_saved_tensor_hooks() at the start of the program") != std::string::npos);
}
