#include "plimsoll/capture/cpu_tap.h"

#include <c10/core/Allocator.h>
#include <c10/util/Exception.h>

#include <atomic>
#include <mutex>

#include "plimsoll/capture/registry.h"

namespace plimsoll::capture {

namespace {

/// The deleter of the allocator below the tap, if its context is the address itself, as in torch's own allocator. Then
/// one function serves all allocations, without a record for each.
std::atomic<c10::DeleterFnPtr> plain_deleter{nullptr};

void release_plain(void* address) {
  Registry::of_process().freed(kCpu, address);
  plain_deleter.load(std::memory_order_acquire)(address);
}

/// The record for all other allocations.
struct Carried {
  c10::DataPtr inner;
};

void release_carried(void* context) {
  const std::unique_ptr<Carried> carried(static_cast<Carried*>(context));
  Registry::of_process().freed(kCpu, carried->inner.get());
}

class CpuTap final : public c10::Allocator {
 public:
  explicit CpuTap(c10::Allocator& below) : below_(below) {}

  c10::DataPtr allocate(std::size_t bytes) override {
    auto pointer = below_.allocate(bytes);
    auto& registry = Registry::of_process();
    if (pointer.get() == nullptr || !registry.has_listeners()) return pointer;
    void* const address = pointer.get();
    if (!take_over(pointer)) {
      auto carried = std::make_unique<Carried>();
      carried->inner = std::move(pointer);
      pointer = c10::DataPtr(address, carried.release(), &release_carried, kCpu);
    }
    registry.allocated(kCpu, address, bytes, kNoStream);
    return pointer;
  }

  /// For callers that use the bare address (oneDNN).
  c10::DeleterFnPtr raw_deleter() const override {
    const auto deleter = below_.raw_deleter();
    return deleter == plain_deleter.load(std::memory_order_acquire) ? &release_plain : deleter;
  }
  void copy_data(void* destination, const void* source, std::size_t bytes) const override {
    below_.copy_data(destination, source, bytes);
  }

  static bool take_over(c10::DataPtr& pointer) {
    const auto deleter = plain_deleter.load(std::memory_order_acquire);
    return deleter != nullptr && pointer.get() == pointer.get_context() &&
           pointer.compare_exchange_deleter(deleter, &release_plain);
  }

 private:
  c10::Allocator& below_;
};

std::mutex installing_cpu_tap;
CpuTap* last_cpu_tap = nullptr;  // The latest tap. Taps are never destroyed, because storages point to them.

}  // namespace

void install_cpu_tap() {
  std::lock_guard lock(installing_cpu_tap);
  auto* const current = c10::GetAllocator(c10::kCPU);
  if (current == last_cpu_tap) return;
  if (last_cpu_tap == nullptr) plain_deleter.store(current->raw_deleter(), std::memory_order_release);
  last_cpu_tap = new CpuTap(*current);
  // An allocator of equal or higher priority replaces the current one. Use the lowest that works, so that the user can
  // still set another allocator.
  for (const int priority : {0, 255}) {
    c10::SetAllocator(c10::kCPU, last_cpu_tap, static_cast<std::uint8_t>(priority));
    if (c10::GetAllocator(c10::kCPU) == last_cpu_tap) return;
  }
  TORCH_CHECK(false,
              "the CPU allocator that is set with c10::SetAllocator cannot be replaced by one of the same priority");
}

bool adopt_cpu_storage(const c10::Storage& storage) {
  auto* const implementation = storage.unsafeGetStorageImpl();
  if (!storage.device().is_cpu() || storage.data() == nullptr) return false;
  if (Registry::of_process().find(kCpu, storage.data())) return true;
  if (!CpuTap::take_over(implementation->_mutable_data_ptr_no_checks())) return false;
  {
    std::lock_guard lock(installing_cpu_tap);
    implementation->set_allocator(last_cpu_tap);
  }
  Registry::of_process().allocated(kCpu, storage.data(), storage.nbytes(), kNoStream);
  return true;
}

}  // namespace plimsoll::capture
