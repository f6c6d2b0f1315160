#include <ATen/Functions.h>
#include <doctest/doctest.h>

#include <string>

#include "nn/error_text.h"
#include "plimsoll/nn/optim/sgd.h"

namespace test_sgd {

// Numbers and allocations are compared with torch.optim in tests/python/nn/test_nn_optim.py.

using namespace plimsoll::nn;

namespace {

at::Tensor parameter() {
  at::Tensor tensor = at::ones({3}).set_requires_grad(true);
  tensor.mutable_grad() = at::ones({3});
  return tensor;
}

std::string refusal(const SGDOptions& options) {
  return error_text([&] { SGD({parameter()}, options); });
}

}  // namespace

TEST_CASE("SGD refuses options out of range by name") {
  CHECK(refusal({.lr = -0.5}) == "SGD's lr is -0.5, but has to be at least 0");
  CHECK(refusal({.momentum = -1}) == "SGD's momentum is -1, but has to be at least 0");
  CHECK(refusal({.weight_decay = -1}) == "SGD's weight_decay is -1, but has to be at least 0");
  const std::string nesterov = "Nesterov momentum needs a momentum above 0 and no dampening; SGD was given momentum ";
  CHECK(refusal({.nesterov = true}) == nesterov + "0 and dampening 0");
  CHECK(refusal({.momentum = 0.5, .dampening = 0.25, .nesterov = true}) == nesterov + "0.5 and dampening 0.25");
  CHECK(refusal({.momentum = 0.5, .nesterov = true}).empty());
}

TEST_CASE("SGD steps sparse gradients in the for-loop and the foreach form, and refuses them fused") {
  for (const auto form : {Implementation::kForLoop, Implementation::kForeach}) {
    const at::Tensor sparse = parameter();
    sparse.mutable_grad() = at::ones({3}).to_sparse();
    SGD({sparse}, {.lr = 0.5, .implementation = form}).step();
    CHECK(at::equal(sparse, at::full({3}, 0.5)));
  }
  const at::Tensor sparse = parameter();
  sparse.mutable_grad() = at::ones({3}).to_sparse();
  SGD fused({sparse}, {.implementation = Implementation::kFused});
  CHECK(error_text([&] { fused.step(); }) ==
        "the fused form of SGD steps dense gradients, but one is sparse: choose Implementation::kForLoop or kForeach");
}

TEST_CASE("the fused form with momentum refuses a parameter without a buffer after the first step") {
  const at::Tensor late = parameter();
  late.mutable_grad().reset();
  SGD optimizer({parameter(), late}, {.momentum = 0.5, .implementation = Implementation::kFused});
  optimizer.step();
  late.mutable_grad() = at::ones({3});
  CHECK(error_text([&] { optimizer.step(); }) ==
        "the fused form of SGD with momentum starts all buffers of a group at once; 1 of 2 parameters with a gradient "
        "have no buffer yet: give all parameters of the group a gradient in the first step, or choose "
        "Implementation::kForLoop or kForeach");
}

TEST_CASE("complex parameters are stepped") {
  const at::Tensor complex = at::zeros({2}, at::kComplexFloat).set_requires_grad(true);
  complex.mutable_grad() = at::ones({2}, at::kComplexFloat);
  SGD({complex}, {.lr = 0.5}).step();
  CHECK(at::equal(complex, at::full({2}, -0.5, at::kComplexFloat)));
}

}  // namespace test_sgd
