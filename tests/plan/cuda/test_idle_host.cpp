#include <ATen/Functions.h>
#include <doctest/doctest.h>

#include <vector>

#include "plimsoll/plan/idle_host.h"

using namespace plimsoll;

namespace {

constexpr std::int64_t kLarge = 1 << 20;  // Elements: 4 MiB.

}  // namespace

TEST_CASE("large CPU tensors are not computed, and their results have memory") {
  const auto a = at::zeros({kLarge}), b = at::ones({kLarge});
  plan::IdleHost host;
  const nn::DispatchModeScope scope(nn::ModeLevel::kBelowAutograd, host);
  const auto sum = a + b;
  CHECK(sum.sizes() == a.sizes());
  CHECK(sum.device().is_cpu());
  CHECK(sum.storage().nbytes() == kLarge * sizeof(float));
  const auto before = a.data_ptr();
  const auto& same = a.add_(b);
  CHECK(same.data_ptr() == before);
  CHECK(a.slice(0, 0, 4).sum().item<float>() == 0);  // Nothing was added.
}

TEST_CASE("small tensors are computed normally") {
  plan::IdleHost host;
  const nn::DispatchModeScope scope(nn::ModeLevel::kBelowAutograd, host);
  auto a = at::ones({4});
  a.add_(at::ones({4}));
  CHECK(a.sum().item<float>() == 8);
}

TEST_CASE("views of large tensors are views") {
  const auto a = at::zeros({kLarge});
  plan::IdleHost host;
  const nn::DispatchModeScope scope(nn::ModeLevel::kBelowAutograd, host);
  CHECK(a.view({2, -1}).data_ptr() == a.data_ptr());
  CHECK(a.slice(0, 8).storage().data() == a.storage().data());
}

TEST_CASE("operators on lists return lists") {
  const std::vector<at::Tensor> a = {at::zeros({kLarge}), at::zeros({3})};
  plan::IdleHost host;
  const nn::DispatchModeScope scope(nn::ModeLevel::kBelowAutograd, host);
  const auto sums = at::_foreach_add(a, 1.0);
  REQUIRE(sums.size() == 2);
  CHECK(sums[0].sizes() == a[0].sizes());
  CHECK(sums[1].sizes() == a[1].sizes());
  at::_foreach_mul_(a, 2.0);
}

TEST_CASE("copies to the GPU are on the GPU, and pinned tensors are pinned") {
  const auto a = at::zeros({kLarge});
  plan::IdleHost host;
  const nn::DispatchModeScope scope(nn::ModeLevel::kBelowAutograd, host);
  CHECK(a.to(at::kCUDA).is_cuda());
  const auto pinned = a.pin_memory();
  CHECK(pinned.is_pinned());
  CHECK(pinned.sizes() == a.sizes());
}

TEST_CASE("an operator with value-dependent sizes is computed") {
  const auto a = at::ones({kLarge}), b = at::zeros({kLarge});
  plan::IdleHost host;
  const nn::DispatchModeScope scope(nn::ModeLevel::kBelowAutograd, host);
  CHECK(at::view_as_real(at::polar(a, b)).slice(0, 0, 1).sum().item<float>() == 1);
}
