#include "plimsoll/capture/reporting.h"

#include <ATen/DeviceAccelerator.h>
#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include "plimsoll/capture/registry.h"

namespace plimsoll::capture {

namespace {

const auto kKind = c10::DebugInfoKind::PROFILER_STATE;

c10::MemoryReportingInfoBase* current_reporter() {
  return static_cast<c10::MemoryReportingInfoBase*>(c10::ThreadLocalDebugInfo::get(kKind));
}

}  // namespace

bool has_other_devices() {
  const auto accelerator = at::getAccelerator(/*checked=*/false);
  return accelerator && *accelerator != c10::kCUDA;
}

class ReportingScope::Channel final : public c10::MemoryReportingInfoBase {
 public:
  void reportMemoryUsage(void* address, std::int64_t bytes, std::size_t total_allocated, std::size_t total_reserved,
                         c10::Device device) override {
    // CPU and CUDA have their own sources, which see all threads.
    if (!device.is_cpu() && !device.is_cuda()) {
      auto& registry = Registry::of_process();
      if (bytes >= 0) {
        registry.allocated(device, address, static_cast<Bytes>(bytes), ledger::StreamId{0});
      } else {
        registry.freed(device, address);
      }
    }
    if (before != nullptr) before->reportMemoryUsage(address, bytes, total_allocated, total_reserved, device);
  }

  void reportOutOfMemory(std::int64_t bytes, std::size_t total_allocated, std::size_t total_reserved,
                         c10::Device device) override {
    if (before != nullptr) before->reportOutOfMemory(bytes, total_allocated, total_reserved, device);
  }

  bool memoryProfilingEnabled() const override { return true; }

  /// The previous holder of the channel: a profiler or an outer scope. Scopes nest, so it outlives this one.
  c10::MemoryReportingInfoBase* before = nullptr;
  std::shared_ptr<c10::ThreadLocalDebugInfo> stack_before;
};

ReportingScope::ReportingScope() : channel_(std::make_shared<Channel>()) {
  channel_->before = current_reporter();
  if (channel_->before != nullptr && !channel_->before->memoryProfilingEnabled()) channel_->before = nullptr;
  channel_->stack_before = c10::ThreadLocalDebugInfo::current();
  c10::ThreadLocalDebugInfo::_push(kKind, channel_);
}

ReportingScope::~ReportingScope() {
  // A profiler that started inside the scope and still runs keeps the channel.
  if (current_reporter() == channel_.get()) c10::ThreadLocalDebugInfo::_forceCurrentDebugInfo(channel_->stack_before);
}

bool ReportingScope::missed() const { return current_reporter() != channel_.get(); }

}  // namespace plimsoll::capture
