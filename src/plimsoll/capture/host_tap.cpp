#include "plimsoll/capture/host_tap.h"

#include <ATen/Context.h>
#include <ATen/core/CachingHostAllocator.h>
#include <c10/core/Allocator.h>
#include <c10/core/AllocatorConfig.h>
#include <c10/util/Exception.h>
#include <c10/util/flat_hash_map.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>

#include "plimsoll/capture/registry.h"

// [Note: the context of pinned memory]
// The host allocator does not reuse a block while a stream uses it. A copy reports the use with record_event(address,
// context, stream). The address may lie within the block (a slice); the context identifies the block (copy_kernel_cuda
// in Copy.cu). So the tap keeps the allocator's context and replaces only the deleter. The deleter receives only the
// context, so its other data are stored here under the context.

namespace plimsoll::capture {

namespace {

/// The blocks that the tap's deleter frees, by context. Never destroyed, because deleters outlive all static objects.
class TakenOver {
 public:
  struct Block {
    const void* address = nullptr;
    c10::DeleterFnPtr deleter = nullptr;
  };

  static TakenOver& of_process() {
    static auto* taken_over = new TakenOver;
    return *taken_over;
  }

  /// Returns false if the context is known: a tap below has the block already, or two blocks share the context, and a
  /// free could not be assigned to one of them.
  bool insert(void* context, const Block& block) {
    std::lock_guard lock(mutex_);
    return blocks_.emplace(context, block).second;
  }

  std::optional<Block> take(void* context) noexcept {
    std::lock_guard lock(mutex_);
    const auto entry = blocks_.find(context);
    if (entry == blocks_.end()) return std::nullopt;
    const Block block = entry->second;
    blocks_.erase(entry);
    return block;
  }

 private:
  std::mutex mutex_;
  ska::flat_hash_map<void*, Block> blocks_;
};

void release_counted(void* context) {
  auto& registry = Registry::of_process();
  const auto block = TakenOver::of_process().take(context);
  if (!block) return registry.defect("a block of pinned memory was freed twice");
  // Report first: after the free another thread may get the same block.
  registry.freed(kCpu, block->address);
  block->deleter(context);
}

bool take_over(c10::DataPtr& pointer) {
  void* const context = pointer.get_context();
  const auto deleter = pointer.get_deleter();
  if (pointer.get() == nullptr || context == nullptr) return false;
  return TakenOver::of_process().insert(context, {pointer.get(), deleter}) &&
         pointer.compare_exchange_deleter(deleter, &release_counted);
}

/// Mirrors CachingHostAllocatorImpl::allocate (torch 2.13).
Bytes counted_bytes(std::size_t requested) {
  using Config = c10::CachingAllocator::AcceleratorAllocatorConfig;
  const auto largest_rounded = std::min(Config::pinned_max_round_threshold(), Config::pinned_max_cached_size());
  return requested <= largest_rounded ? std::bit_ceil(requested) : requested;
}

class HostTap final : public at::HostAllocator {
 public:
  explicit HostTap(at::HostAllocator& below) : below_(below) {}

  c10::DataPtr allocate(std::size_t bytes) override {
    auto pointer = below_.allocate(bytes);
    auto& registry = Registry::of_process();
    if (registry.has_listeners() && take_over(pointer)) {
      registry.allocated(kCpu, pointer.get(), counted_bytes(bytes), kNoStream);
    }
    return pointer;
  }

  // raw_deleter() stays null, as torch's own does: otherwise all memory would need the same deleter.

  bool is_simple_data_ptr(const c10::DataPtr& pointer) const override { return below_.is_simple_data_ptr(pointer); }
  void copy_data(void* destination, const void* source, std::size_t bytes) const override {
    below_.copy_data(destination, source, bytes);
  }
  bool record_event(void* address, void* context, c10::Stream stream) override {
    return below_.record_event(address, context, stream);
  }
  void empty_cache() override { below_.empty_cache(); }
  at::HostStats get_stats() override { return below_.get_stats(); }
  void reset_accumulated_stats() override { below_.reset_accumulated_stats(); }
  void reset_peak_stats() override { below_.reset_peak_stats(); }
  void begin_allocate_to_pool(c10::MempoolId_t pool, std::function<bool(c10::Stream)> filter) override {
    below_.begin_allocate_to_pool(pool, std::move(filter));
  }
  void end_allocate_to_pool(c10::MempoolId_t pool) override { below_.end_allocate_to_pool(pool); }
  void release_pool(c10::MempoolId_t pool) override { below_.release_pool(pool); }

 private:
  at::HostAllocator& below_;
};

std::mutex installing_host_tap;
HostTap* last_host_tap = nullptr;         // The latest tap. Taps are never destroyed, because storages point to them.
c10::DeleterFnPtr own_deleter = nullptr;  // The deleter of the allocator below the first tap.

}  // namespace

void install_host_tap() {
  if (!at::globalContext().hasCUDA()) return;
  std::lock_guard lock(installing_host_tap);
  auto* const current = at::getHostAllocator(c10::kCUDA);
  if (current == last_host_tap) return;
  // A request for 0 bytes allocates nothing but still returns the deleter.
  if (last_host_tap == nullptr) own_deleter = current->allocate(0).get_deleter();
  last_host_tap = new HostTap(*current);
  // As in install_cpu_tap.
  for (const int priority : {0, 255}) {
    at::setHostAllocator(c10::kCUDA, last_host_tap, static_cast<std::uint8_t>(priority));
    if (at::getHostAllocator(c10::kCUDA) == last_host_tap) return;
  }
  TORCH_CHECK(false, "the host allocator set with at::setHostAllocator cannot be replaced by one of the same priority");
}

bool adopt_pinned_storage(const c10::Storage& storage) {
  auto* const implementation = storage.unsafeGetStorageImpl();
  if (!storage.device().is_cpu() || storage.data() == nullptr) return false;
  std::lock_guard lock(installing_host_tap);  // If two threads adopt the storage, the second finds it.
  if (Registry::of_process().find(kCpu, storage.data())) return true;
  auto& pointer = implementation->_mutable_data_ptr_no_checks();
  if (last_host_tap == nullptr || pointer.get_deleter() != own_deleter || !take_over(pointer)) return false;
  implementation->set_allocator(last_host_tap);
  Registry::of_process().allocated(kCpu, storage.data(), counted_bytes(storage.nbytes()), kNoStream);
  return true;
}

}  // namespace plimsoll::capture
