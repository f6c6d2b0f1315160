#include <ATen/Functions.h>
#include <doctest/doctest.h>

#include <limits>
#include <vector>

#include "nn/error_text.h"
#include "plimsoll/nn/optim/clip_grad_norm.h"

namespace test_clip_grad_norm {

// Numbers and allocations are compared with torch.nn.utils in tests/python/nn/test_nn_optim.py.

using namespace plimsoll::nn;

namespace {

at::Tensor parameter(double gradient, at::Device device = at::kCPU) {
  at::Tensor tensor = at::ones({1}, at::TensorOptions().device(device)).set_requires_grad(true);
  tensor.mutable_grad() = at::full_like(tensor, gradient);
  return tensor;
}

double gradient_of(const at::Tensor& tensor) { return tensor.grad()[0].item().toDouble(); }

}  // namespace

TEST_CASE("gradients above the norm are scaled down, and smaller ones are unchanged") {
  const std::vector<at::Tensor> parameters = {parameter(3), at::ones({1}).set_requires_grad(true), parameter(4)};
  CHECK(clip_grad_norm_(parameters, 10).item().toDouble() == 5);
  CHECK(gradient_of(parameters[0]) == 3);
  CHECK(clip_grad_norm_(parameters, 2.5).item().toDouble() == 5);
  CHECK(gradient_of(parameters[0]) == doctest::Approx(1.5).epsilon(1e-6));
  CHECK(gradient_of(parameters[2]) == doctest::Approx(2).epsilon(1e-6));
  CHECK(!parameters[1].grad().defined());
}

TEST_CASE("without gradients the norm is 0") {
  CHECK(clip_grad_norm_({}, 1).item().toDouble() == 0);
  CHECK(clip_grad_norm_({at::ones({1})}, 1).item().toDouble() == 0);
}

TEST_CASE("a norm that is not finite is an error only on request") {
  const std::vector<at::Tensor> parameters = {parameter(std::numeric_limits<double>::infinity())};
  CHECK(error_text([&] { clip_grad_norm_(parameters, 1, {.error_if_nonfinite = true}); }) ==
        "the norm of order 2 of the gradients is inf, so they cannot be clipped. Look for the operation that "
        "overflowed, or leave error_if_nonfinite at false to scale by it anyway");
  CHECK(clip_grad_norm_(parameters, 1).isinf().item().toBool());
}

TEST_CASE("foreach is refused on a device without foreach operators") {
  const std::vector<at::Tensor> parameters = {parameter(1, at::kMeta)};
  CHECK(error_text([&] { clip_grad_norm_(parameters, 1, {.foreach = true}); }) ==
        "foreach = true, but torch has no foreach operators on meta: leave the option out, or set it to false");
  CHECK(clip_grad_norm_(parameters, 1).is_meta());
}

}  // namespace test_clip_grad_norm
