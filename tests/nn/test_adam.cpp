#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <doctest/doctest.h>

#include <limits>
#include <vector>

#include "nn/error_text.h"
#include "plimsoll/nn/optim/adamw.h"

namespace test_adam {

// Numbers and allocations are compared with torch.optim in tests/python/nn/test_nn_optim.py.

using namespace plimsoll::nn;

namespace {

at::Tensor parameter(at::Device device = at::kCPU) {
  at::Tensor tensor = at::ones({3}, at::TensorOptions().device(device)).set_requires_grad(true);
  tensor.mutable_grad() = at::ones_like(tensor);
  return tensor;
}

std::string refusal(const AdamOptions& options) {
  return error_text([&] { Adam({parameter()}, options); });
}

at::Tensor step_state(const Optimizer& optimizer) { return optimizer.export_state().entries.at(0).tensor; }

}  // namespace

TEST_CASE("Adam refuses options out of range by name") {
  CHECK(refusal({.lr = -0.5}) == "Adam's lr is -0.5, but has to be at least 0");
  CHECK(refusal({.lr = std::numeric_limits<double>::quiet_NaN()}) == "Adam's lr is nan, but has to be at least 0");
  CHECK(refusal({.betas = {1, 0.5}}) == "Adam's betas[0] is 1, but has to be in [0, 1)");
  CHECK(refusal({.betas = {0.5, -1}}) == "Adam's betas[1] is -1, but has to be in [0, 1)");
  CHECK(refusal({.eps = -1}) == "Adam's eps is -1, but has to be at least 0");
  CHECK(refusal({.weight_decay = -1}) == "Adam's weight_decay is -1, but has to be at least 0");
  CHECK(refusal({.lr = 0, .betas = {0, 0}, .eps = 0}).empty());
  CHECK(error_text([] { AdamW({parameter()}, {.lr = -1}); }) == "Adam's lr is -1, but has to be at least 0");
}

TEST_CASE("Adam refuses complex parameters") {
  const at::Tensor complex = at::zeros({2}, at::kComplexFloat).set_requires_grad(true);
  CHECK(error_text([&] { Adam({complex}); }) ==
        "Adam steps real parameters, but one of shape [2] is ComplexFloat: keep it as a real parameter with a last "
        "dimension of 2 and use at::view_as_complex in the forward");
}

TEST_CASE("Adam refuses sparse gradients") {
  const at::Tensor sparse = parameter();
  sparse.mutable_grad() = at::ones({3}).to_sparse();
  CHECK(error_text([&] { AdamW({sparse}).step(); }) ==
        "AdamW steps dense gradients, but that of a parameter of shape [3] is sparse: make it dense, or use SGD for "
        "the group");
}

TEST_CASE("amsgrad cannot be switched on after the first step") {
  Adam optimizer({parameter()});
  optimizer.step();
  optimizer.options().amsgrad = true;
  CHECK(error_text([&] { optimizer.step(); }) ==
        "amsgrad was switched on for group 0 of Adam after a parameter of shape [3] had been stepped without it: "
        "choose it "
        "before the first step");
}

TEST_CASE("capturable is refused for parameters on CPU, in the for-loop and the foreach form") {
  for (const auto form : {Implementation::kForLoop, Implementation::kForeach}) {
    Adam optimizer({parameter()}, {.capturable = true, .implementation = form});
    CHECK(error_text([&] { optimizer.step(); }) ==
          "capturable needs the parameter and its step count on one accelerator; a parameter of shape [3] is on cpu "
          "and its "
          "step count on cpu. Choose capturable before the first step, and for parameters on an accelerator only");
  }
}

TEST_CASE("the fused form is refused for parameters that are not floating-point or on a device without a kernel") {
  const at::Tensor meta = parameter(at::kMeta);
  Adam optimizer({meta}, {.implementation = Implementation::kFused});
  CHECK(
      error_text([&] { optimizer.step(); }) ==
      "the fused form of Adam steps floating-point parameters on CPU, CUDA, XPU, HPU, MTIA or MPS; one of shape [3] is "
      "Float on meta. Choose Implementation::kForeach or kForLoop for its group");
}

TEST_CASE("a parameter without a gradient is unchanged and gets no state") {
  const at::Tensor with = parameter(), without = parameter();
  without.mutable_grad().reset();
  AdamW optimizer({with, without});
  optimizer.step();
  CHECK(at::equal(without, at::ones({3})));
  CHECK(optimizer.export_state().entries.size() == 3);
}

TEST_CASE("the step count is on the CPU unless the step is capturable or fused") {
  if (!at::globalContext().hasCUDA()) {
    MESSAGE("skipped: torch is not a CUDA build");
    return;
  }
  for (const auto form : {Implementation::kDefault, Implementation::kForLoop, Implementation::kForeach}) {
    Adam optimizer({parameter(at::kCUDA)}, {.implementation = form});
    optimizer.step();
    CHECK(step_state(optimizer).is_cpu());
    CHECK(step_state(optimizer).item().toDouble() == 1);
  }
  Adam fused({parameter(at::kCUDA)}, {.implementation = Implementation::kFused});
  fused.step();
  CHECK(step_state(fused).is_cuda());
  Adam capturable({parameter(at::kCUDA)}, {.capturable = true});
  capturable.step();
  CHECK(step_state(capturable).is_cuda());
}

}  // namespace test_adam
