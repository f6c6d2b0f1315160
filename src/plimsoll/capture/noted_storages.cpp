#include "plimsoll/capture/noted_storages.h"

#include <c10/core/Allocator.h>
#include <c10/util/flat_hash_map.h>

#include <memory>
#include <mutex>

#include "plimsoll/capture/registry.h"

// [Note: the end of a storage without memory]
// A storage's data pointer may have a context and a deleter even where its address is null, and the deleter is called
// when the storage goes. Nothing else tells, on whatever thread, that it does.

namespace plimsoll::capture {
namespace {

/// Which device a noted storage stands for; in the registry it goes by its own address. Never destroyed, because
/// deleters outlive every static object.
struct Noted {
  std::mutex mutex;
  ska::flat_hash_map<const void*, c10::Device> devices;

  static Noted& of_process() {
    static auto* const noted = new Noted;
    return *noted;
  }

  std::optional<c10::Device> device_of(const void* storage) {
    std::lock_guard lock(mutex);
    const auto found = devices.find(storage);
    return found == devices.end() ? std::nullopt : std::optional(found->second);
  }
};

Bytes counted(c10::Device device, Bytes bytes) {
  constexpr Bytes kSmallestBlock = 512;
  return device.is_cuda() ? (bytes + kSmallestBlock - 1) / kSmallestBlock * kSmallestBlock : bytes;
}

void release_noted(void* storage) {
  auto& noted = Noted::of_process();
  const auto device = noted.device_of(storage);
  if (!device) return;
  {
    std::lock_guard lock(noted.mutex);
    noted.devices.erase(storage);
  }
  Registry::of_process().freed(*device, storage);
}

}  // namespace

bool note_storage(const c10::Storage& storage, c10::Device device, Bytes bytes) {
  auto* const implementation = storage.unsafeGetStorageImpl();
  auto& pointer = implementation->_mutable_data_ptr_no_checks();
  if (pointer.get() != nullptr || pointer.get_context() != nullptr) return false;
  {
    auto& noted = Noted::of_process();
    std::lock_guard lock(noted.mutex);
    noted.devices.insert_or_assign(implementation, device);
  }
  pointer = c10::DataPtr(nullptr, implementation, &release_noted, pointer.device());
  Registry::of_process().allocated(device, implementation, counted(device, bytes), kNoStream);
  return true;
}

void noted_storage_resized(const c10::Storage& storage, Bytes bytes) {
  const void* const implementation = storage.unsafeGetStorageImpl();
  if (const auto device = Noted::of_process().device_of(implementation)) {
    Registry::of_process().resized(*device, implementation, counted(*device, bytes));
  }
}

std::optional<Registry::Found> find_noted(const c10::Storage& storage) {
  const void* const implementation = storage.unsafeGetStorageImpl();
  const auto device = Noted::of_process().device_of(implementation);
  return device ? Registry::of_process().find(*device, implementation) : std::nullopt;
}

}  // namespace plimsoll::capture
