#include "plimsoll/capture/cuda_trace.h"

#include <ATen/Context.h>
#include <c10/core/Allocator.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/macros/Export.h>
#include <c10/util/Exception.h>

#include <atomic>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <tuple>
#include <utility>
#include <vector>

#include "plimsoll/capture/noted_storages.h"
#include "plimsoll/capture/registry.h"

// torch declares these in ATen/cuda/CUDAContextLight.h, which includes the headers of cuSPARSE, cuBLAS and cuSOLVER:
// wheels of hundreds of megabytes for four functions.
namespace at::cuda {

struct WorkspaceMapWithMutex {
  std::map<std::tuple<void*, void*>, std::pair<at::DataPtr, std::size_t>> map;
  std::shared_mutex mutex;
};

TORCH_CUDA_CPP_API WorkspaceMapWithMutex& cublas_handle_stream_to_workspace();
TORCH_CUDA_CPP_API WorkspaceMapWithMutex& cublaslt_handle_stream_to_workspace();
TORCH_CUDA_CPP_API std::size_t getChosenWorkspaceSize();
TORCH_CUDA_CPP_API std::size_t getCUDABlasLtWorkspaceSize();

}  // namespace at::cuda

// [Note: the size of a block]
// The trace reports the requested size. The allocator counts the block, which is larger because of rounding and of
// remainders too small to split. It updates its statistics right after the report, under the same lock. So the last
// block of a device is *unsettled*: the registry has its size rounded up to the allocator's smallest unit, which is
// usually right and never too large. At the next event of the device, or the next read of the books, the allocator's
// total gives the difference. One read of the statistics for each block makes the books exact.

namespace plimsoll::capture {

namespace {

using c10::CachingDeviceAllocator::TraceEntry;
namespace allocator = c10::cuda::CUDACachingAllocator;

constexpr Bytes kSmallestBlock = 512;

class CudaTrace {
 public:
  static CudaTrace& of_process() {
    static auto* trace = new CudaTrace;
    return *trace;
  }

  void start() {
    std::lock_guard lock(starting_);
    if (started_) update_workspace_sizes();  // The sizes may have changed.
    if (waits_ && !allocator::get()->initialized()) return;
    if (started_ || !at::globalContext().hasCUDA() || c10::cuda::device_count() == 0) return;
    TORCH_CHECK(std::getenv("PYTORCH_NO_CUDA_MEMORY_CACHING") == nullptr && allocator::get()->name() == "native",
                "CUDA memory is observed through the trace of torch's caching allocator, but this process uses another "
                "allocator (",
                allocator::get()->name(), "). Leave out backend:cudaMallocAsync and PYTORCH_NO_CUDA_MEMORY_CACHING.");
    // The trace would miss the allocator of a device that is not initialised.
    at::globalContext().lazyInitDevice(c10::kCUDA);
    for (c10::DeviceIndex index = 0; index < c10::cuda::device_count(); ++index) devices_.emplace_back(index);
    allocator::get()->attachAllocatorTraceTracker([this](const TraceEntry& entry) { on_event(entry); });
    for (const auto& segment : allocator::snapshot().segments) find(segment);
    update_workspace_sizes();
    started_.store(true, std::memory_order_release);
  }

  void wait_for_cuda() { waits_ = true; }

  void settle() {
    if (!started_.load(std::memory_order_acquire)) return;
    for (std::size_t index = 0; index < devices_.size(); ++index) {
      auto& device = devices_[index];
      if (!device.touched.exchange(false, std::memory_order_acq_rel)) continue;
      // Another thread may allocate between the read of the statistics and that of the last block; then try again.
      for (;;) {
        const auto version = device.version.load(std::memory_order_acquire);
        const auto active = active_bytes(static_cast<c10::DeviceIndex>(index));
        std::lock_guard lock(device.mutex);
        if (device.version.load(std::memory_order_acquire) != version) continue;
        settle(device, active);
        break;
      }
    }
  }

  static Bytes active_bytes(c10::DeviceIndex device) {
    return static_cast<Bytes>(allocator::getDeviceStats(device).active_bytes[kAggregate].current);
  }

  bool covers(c10::Device device) const {
    return started_.load(std::memory_order_acquire) && device.is_cuda() && device.has_index() &&
           static_cast<std::size_t>(device.index()) < devices_.size();
  }

  std::uint64_t workspaces_version() const { return workspaces_version_.load(std::memory_order_acquire); }

 private:
  static constexpr auto kAggregate = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);

  /// Guarded by the device's lock in the allocator; the mutex guards against a thread that settles.
  struct Device {
    explicit Device(c10::DeviceIndex index) : device(c10::kCUDA, index) {}
    Device(Device&& other) noexcept : device(other.device) {}  // Only for the vector, while the device is empty.

    const c10::Device device;
    std::mutex mutex;
    std::atomic<std::uint64_t> version{0};
    std::atomic<bool> touched{false};
    const void* unsettled = nullptr;
    Bytes unsettled_bytes = 0;
  };

  void on_event(const TraceEntry& entry) noexcept {
    auto& registry = Registry::of_process();
    const auto* address = reinterpret_cast<const void*>(entry.addr_);
    auto& device = devices_[entry.device_];
    const auto where = device.device;
    switch (entry.action_) {
      case TraceEntry::ALLOC: {
        const std::lock_guard lock(device.mutex);
        next_event(device);
        const Bytes bytes = round_up(entry.size_, kSmallestBlock);
        registry.allocated(where, address, bytes, ledger::StreamId(reinterpret_cast<std::intptr_t>(entry.stream_)));
        device.unsettled = address;
        device.unsettled_bytes = bytes;
        if (entry.size_ == cublas_bytes_.load(std::memory_order_relaxed) ||
            entry.size_ == cublaslt_bytes_.load(std::memory_order_relaxed)) {
          workspaces_version_.fetch_add(1, std::memory_order_acq_rel);
        }
        break;
      }
      case TraceEntry::FREE_COMPLETED: {
        const std::lock_guard lock(device.mutex);
        next_event(device);
        registry.freed(where, address);
        break;
      }
      case TraceEntry::SEGMENT_ALLOC:
      case TraceEntry::SEGMENT_MAP:
        registry.segment(where, static_cast<std::int64_t>(entry.size_));
        break;
      case TraceEntry::SEGMENT_FREE:
      case TraceEntry::SEGMENT_UNMAP:
        registry.segment(where, -static_cast<std::int64_t>(entry.size_));
        break;
      default:
        break;
    }
  }

  /// REQUIRES: device.mutex is held.
  static void next_event(Device& device) noexcept {
    device.version.fetch_add(1, std::memory_order_acq_rel);
    device.touched.store(true, std::memory_order_release);
    if (device.unsettled != nullptr) settle(device, active_bytes(device.device.index()));
  }

  /// REQUIRES: device.mutex is held, and the device had no event since `active` was read.
  static void settle(Device& device, Bytes active) noexcept {
    auto& registry = Registry::of_process();
    const auto* const last = std::exchange(device.unsettled, nullptr);
    if (!registry.settle(device.device, last, device.unsettled_bytes, active + noted_bytes(device.device))) {
      registry.defect("the books of a GPU do not agree with its allocator: an allocation or a free was missed");
    }
  }

  static void find(const c10::CachingDeviceAllocator::SegmentInfo& segment) {
    auto& registry = Registry::of_process();
    const c10::Device where(c10::kCUDA, segment.device);
    registry.segment(where, static_cast<std::int64_t>(segment.total_size));
    auto address = segment.address;
    for (const auto& block : segment.blocks) {
      if (block.active) {
        registry.allocated(where, reinterpret_cast<const void*>(address), block.size,
                           ledger::StreamId(reinterpret_cast<std::intptr_t>(segment.stream)));
      }
      address += block.size;
    }
  }

  void update_workspace_sizes() {
    cublas_bytes_.store(at::cuda::getChosenWorkspaceSize(), std::memory_order_relaxed);
    cublaslt_bytes_.store(at::cuda::getCUDABlasLtWorkspaceSize(), std::memory_order_relaxed);
  }

  std::mutex starting_;
  std::atomic<bool> started_{false};
  std::atomic<bool> waits_{false};
  std::vector<Device> devices_;
  std::atomic<std::size_t> cublas_bytes_{0}, cublaslt_bytes_{0};
  std::atomic<std::uint64_t> workspaces_version_{1};
};

}  // namespace

void start_cuda_trace() { CudaTrace::of_process().start(); }
void wait_for_cuda() { CudaTrace::of_process().wait_for_cuda(); }
void settle_cuda_trace() { CudaTrace::of_process().settle(); }

std::optional<Bytes> cuda_active_bytes(c10::Device device) {
  if (!CudaTrace::of_process().covers(device)) return std::nullopt;
  return CudaTrace::active_bytes(device.index());
}

std::optional<Bytes> taken_of_device(c10::Device device) {
  if (!device.is_cuda() || !device.has_index() || device.index() >= c10::cuda::device_count()) return std::nullopt;
  const auto [free, total] = allocator::get()->getMemoryInfo(device.index());
  return total - free;
}

std::vector<std::pair<c10::Device, const void*>> cuda_workspaces() {
  std::vector<std::pair<c10::Device, const void*>> found;
  for (auto* workspaces :
       {&at::cuda::cublas_handle_stream_to_workspace(), &at::cuda::cublaslt_handle_stream_to_workspace()}) {
    std::shared_lock lock(workspaces->mutex);
    for (const auto& [key, workspace] : workspaces->map) {
      found.emplace_back(workspace.first.device(), workspace.first.get());
    }
  }
  return found;
}

std::uint64_t cuda_workspaces_version() { return CudaTrace::of_process().workspaces_version(); }

}  // namespace plimsoll::capture
