#include <ATen/Functions.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <doctest/doctest.h>

#include "plimsoll/plan/phase_meter.h"

using namespace plimsoll;

namespace {

at::Tensor bytes(std::int64_t count) { return at::empty({count}, at::TensorOptions(at::kCUDA).dtype(at::kByte)); }

constexpr Bytes kMiB = Bytes{1} << 20;

}  // namespace

TEST_CASE("a phase has the allocator's peak between its borders, and work after a step belongs to the next one") {
  c10::cuda::CUDACachingAllocator::init(c10::cuda::device_count());
  plan::PhaseMeter meter;
  CHECK_FALSE(meter.step());
  auto model = bytes(4 * kMiB);
  meter.enter("forward");
  CHECK(meter.step() == 0);
  {
    const auto activation = bytes(8 * kMiB);
  }
  meter.enter("backward");
  const auto gradient = bytes(2 * kMiB);
  meter.enter("optimizer");
  meter.end_step();
  CHECK_FALSE(meter.step());
  {
    const auto between = bytes(16 * kMiB);
  }
  meter.enter("forward");
  CHECK(meter.step() == 1);
  meter.close();

  REQUIRE(meter.before_steps());
  CHECK(meter.before_steps()->active_peak == 4 * kMiB);
  REQUIRE(meter.steps().size() == 2);
  const auto& first = meter.steps()[0];
  CHECK(first.active_peak == 12 * kMiB);
  REQUIRE(first.phases.size() == 3);
  CHECK(first.phases[0].first == "forward");
  CHECK(first.phases[0].second.active_peak == 12 * kMiB);
  CHECK(first.phases[0].second.active_end == 4 * kMiB);
  CHECK(first.phases[1].second.active_peak == 6 * kMiB);
  const auto& second = meter.steps()[1];
  CHECK(second.phases[0].first == "other");
  CHECK(second.phases[0].second.active_peak == 22 * kMiB);
  CHECK(meter.highest().active == 22 * kMiB);
  CHECK(meter.highest().phase == "other");
}
