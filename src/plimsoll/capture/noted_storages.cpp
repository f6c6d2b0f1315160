#include "plimsoll/capture/noted_storages.h"

#include <c10/core/Allocator.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "plimsoll/capture/registry.h"

// [Note: the end of a storage without memory]
// The data pointer of a storage may have a context and a deleter even if its address is null. The deleter is called
// when the storage is destroyed. No other hook reports that on all threads.

namespace plimsoll::capture {
namespace {

/// The noted storages and their devices. The registry knows each by the storage's own address. Never destroyed, because
/// deleters outlive all static objects.
class Noted {
 public:
  static Noted& of_process() {
    static auto* const noted = new Noted;
    return *noted;
  }

  void set(const void* storage, c10::Device device, Bytes bytes) {
    std::lock_guard lock(mutex_);
    const auto [entry, is_new] = storages_.try_emplace(storage, Entry{device, 0});
    totals_[device] += bytes - std::exchange(entry->second.bytes, bytes);
    count_.store(storages_.size(), std::memory_order_release);
  }

  void erase(const void* storage) {
    std::lock_guard lock(mutex_);
    const auto entry = storages_.find(storage);
    if (entry == storages_.end()) return;
    totals_[entry->second.device] -= entry->second.bytes;
    storages_.erase(entry);
    count_.store(storages_.size(), std::memory_order_release);
  }

  std::optional<c10::Device> device_of(const void* storage) const {
    std::lock_guard lock(mutex_);
    const auto found = storages_.find(storage);
    return found == storages_.end() ? std::nullopt : std::optional(found->second.device);
  }

  Bytes total(c10::Device device) const {
    if (count_.load(std::memory_order_acquire) == 0) return 0;  // Called at every event of a GPU's allocator.
    std::lock_guard lock(mutex_);
    const auto found = totals_.find(device);
    return found == totals_.end() ? 0 : found->second;
  }

 private:
  struct Entry {
    c10::Device device;
    Bytes bytes;
  };
  mutable std::mutex mutex_;
  std::unordered_map<const void*, Entry> storages_;
  std::unordered_map<c10::Device, Bytes> totals_;
  std::atomic<std::size_t> count_{0};  ///< Number of storages.
};

Bytes counted(c10::Device device, Bytes bytes) {
  constexpr Bytes kSmallestBlock = 512;
  return device.is_cuda() ? (bytes + kSmallestBlock - 1) / kSmallestBlock * kSmallestBlock : bytes;
}

void release_noted(void* storage) {
  auto& noted = Noted::of_process();
  const auto device = noted.device_of(storage);
  if (!device) return;
  noted.erase(storage);
  Registry::of_process().freed(*device, storage);
}

}  // namespace

bool note_storage(const c10::Storage& storage, c10::Device device, Bytes bytes) {
  auto* const implementation = storage.unsafeGetStorageImpl();
  auto& pointer = implementation->_mutable_data_ptr_no_checks();
  if (pointer.get() != nullptr || pointer.get_context() != nullptr) return false;
  Noted::of_process().set(implementation, device, counted(device, bytes));
  pointer = c10::DataPtr(nullptr, implementation, &release_noted, pointer.device());
  Registry::of_process().allocated(device, implementation, counted(device, bytes), kNoStream);
  return true;
}

void noted_storage_resized(const c10::Storage& storage, Bytes bytes) {
  const void* const implementation = storage.unsafeGetStorageImpl();
  if (const auto device = Noted::of_process().device_of(implementation)) {
    Noted::of_process().set(implementation, *device, counted(*device, bytes));
    Registry::of_process().resized(*device, implementation, counted(*device, bytes));
  }
}

Bytes noted_bytes(c10::Device device) { return Noted::of_process().total(device); }

std::optional<Registry::Found> find_noted(const c10::Storage& storage) {
  const void* const implementation = storage.unsafeGetStorageImpl();
  const auto device = Noted::of_process().device_of(implementation);
  return device ? Registry::of_process().find(*device, implementation) : std::nullopt;
}

}  // namespace plimsoll::capture
