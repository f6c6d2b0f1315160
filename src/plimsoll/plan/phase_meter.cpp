#include "plimsoll/plan/phase_meter.h"

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>

#include <algorithm>

namespace plimsoll::plan {
namespace {

namespace allocator = c10::cuda::CUDACachingAllocator;
constexpr auto kAll = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);

void add(report::StepPeaks& step, const std::string& phase, const report::PhasePeaks& peaks) {
  step.active_peak = std::max(step.active_peak, peaks.active_peak);
  step.allocated_peak = std::max(step.allocated_peak, peaks.allocated_peak);
  step.reserved_peak = std::max(step.reserved_peak, peaks.reserved_peak);
  const auto found =
      std::find_if(step.phases.begin(), step.phases.end(), [&](const auto& entry) { return entry.first == phase; });
  if (found == step.phases.end()) {
    step.phases.emplace_back(phase, peaks);
    return;
  }
  auto& known = found->second;
  known = {.active_peak = std::max(known.active_peak, peaks.active_peak),
           .allocated_peak = std::max(known.allocated_peak, peaks.allocated_peak),
           .reserved_peak = std::max(known.reserved_peak, peaks.reserved_peak),
           .active_end = peaks.active_end,
           .reserved_end = peaks.reserved_end};
}

}  // namespace

PhaseMeter::PhaseMeter() { allocator::resetPeakStats(c10::cuda::current_device()); }

report::PhasePeaks PhaseMeter::cut() {
  const auto device = c10::cuda::current_device();
  const auto stats = allocator::getDeviceStats(device);
  const auto bytes = [](std::int64_t value) { return static_cast<Bytes>(value); };
  allocator::resetPeakStats(device);
  highest_.segments =
      std::max(highest_.segments, static_cast<std::uint64_t>(std::max<std::int64_t>(0, stats.segment[kAll].peak)));
  return {.active_peak = bytes(stats.active_bytes[kAll].peak),
          .allocated_peak = bytes(stats.allocated_bytes[kAll].peak),
          .reserved_peak = bytes(stats.reserved_bytes[kAll].peak),
          .active_end = bytes(stats.active_bytes[kAll].current),
          .reserved_end = bytes(stats.reserved_bytes[kAll].current)};
}

void PhaseMeter::file(report::StepPeaks& step) {
  const auto peaks = cut();
  add(step, phase_, peaks);
  if (peaks.active_peak > highest_.active) {
    highest_.active = peaks.active_peak;
    highest_.step = step.step;
    highest_.phase = phase_;
  }
  highest_.allocated = std::max(highest_.allocated, peaks.allocated_peak);
  highest_.reserved = std::max(highest_.reserved, peaks.reserved_peak);
}

std::optional<std::int64_t> PhaseMeter::step() const {
  if (!open_) return std::nullopt;
  return static_cast<std::int64_t>(steps_.size()) - 1;
}

void PhaseMeter::enter(const std::string& phase) {
  close();
  if (!open_ && phase != "other") {
    report::StepPeaks step{.step = static_cast<std::int64_t>(steps_.size())};
    if (tail_) {
      for (const auto& [name, peaks] : tail_->phases) add(step, name, peaks);
      tail_.reset();
    }
    steps_.push_back(std::move(step));
    open_ = true;
  }
  phase_ = phase;
}

void PhaseMeter::end_step() {
  enter("other");
  open_ = false;
}

void PhaseMeter::close() {
  auto& filed = open_            ? steps_.back()
                : steps_.empty() ? before_.emplace(before_.value_or(report::StepPeaks{}))
                                 : tail_.emplace(tail_.value_or(report::StepPeaks{}));
  file(filed);
}

}  // namespace plimsoll::plan
