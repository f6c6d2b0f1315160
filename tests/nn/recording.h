#pragma once

#include <ATen/Functions.h>
#include <ATen/autocast_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <string>
#include <vector>

#include "plimsoll/nn/dispatch_mode.h"

namespace plimsoll::nn::test {

/// The loss and the gradients of the leaves after one backward pass.
using Gradients = std::vector<at::Tensor>;

inline Gradients backward(const at::Tensor& loss, const std::vector<at::Tensor>& leaves) {
  loss.backward();
  Gradients gradients{loss.detach()};
  for (const at::Tensor& leaf : leaves) gradients.push_back(leaf.grad());
  return gradients;
}

inline bool same_bits(const Gradients& a, const Gradients& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!a[i].defined() || !b[i].defined() || !at::equal(a[i], b[i])) return false;
  }
  return true;
}

/// Records the names of the operators that reach the backends on this thread.
class CallLog final : public DispatchMode {
 public:
  void call(const c10::OperatorHandle& op, torch::jit::Stack& stack) override {
    names.push_back(op.operator_name().name);
    op.callBoxed(&stack);
  }

  std::vector<std::string> names;

 private:
  DispatchModeScope scope_{ModeLevel::kBelowAutograd, *this};
};

/// bfloat16 autocast on the CPU for a scope.
class CpuAutocast {
 public:
  CpuAutocast() {
    at::autocast::set_autocast_enabled(at::kCPU, true);
    at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
    at::autocast::increment_nesting();
  }
  ~CpuAutocast() {
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(at::kCPU, false);
  }
  CpuAutocast(const CpuAutocast&) = delete;
  CpuAutocast& operator=(const CpuAutocast&) = delete;
};

/// An autograd function that unpacks its saved tensor twice.
struct UnpacksTwice : torch::autograd::Function<UnpacksTwice> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x) {
    context->save_for_backward({x});
    return x * 2;
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    context->get_saved_variables();
    context->get_saved_variables();
    return {gradients[0] * 2};
  }
};

}  // namespace plimsoll::nn::test
