#include "plimsoll/capture/registry.h"

#include <c10/util/Exception.h>
#include <pthread.h>

#include <algorithm>

namespace plimsoll::capture {

namespace {

std::uintptr_t number(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

/// "cpu" and "cpu:0" are the same device.
c10::Device normal(c10::Device device) { return device.is_cpu() ? c10::Device(c10::kCPU) : device; }

}  // namespace

// A forked child starts with a free lock and without listeners: its parent's listeners observe the parent.
Registry& Registry::of_process() {
  static auto* const registry = [] {
    pthread_atfork([] { of_process().mutex_.lock(); }, [] { of_process().mutex_.unlock(); },
                   [] {
                     auto& self = of_process();
                     self.listeners_.clear();
                     self.listening_.store(false, std::memory_order_release);
                     self.mutex_.unlock();
                   });
    return new Registry;
  }();
  return *registry;
}

Registry::DeviceBlocks& Registry::blocks_of(c10::Device device) {
  for (const auto& blocks : devices_) {
    if (blocks->device == device) return *blocks;
  }
  devices_.push_back(std::make_unique<DeviceBlocks>());
  devices_.back()->device = device;
  return *devices_.back();
}

const Registry::DeviceBlocks* Registry::known_blocks_of(c10::Device device) const {
  for (const auto& blocks : devices_) {
    if (blocks->device == device) return blocks.get();
  }
  return nullptr;
}

void Registry::subscribe(Listener& listener) {
  std::lock_guard lock(mutex_);
  TORCH_INTERNAL_ASSERT(std::find(listeners_.begin(), listeners_.end(), &listener) == listeners_.end());
  for (const auto& of_device : devices_) {
    if (of_device->reserved > 0) listener.segment(of_device->device, static_cast<std::int64_t>(of_device->reserved));
    // In the order of allocation, so that a log of it is reproducible.
    std::vector<Allocation> alive;
    for (const auto& [address, block] : of_device->blocks) {
      alive.push_back({block.id, of_device->device, block.bytes, block.stream, address});
    }
    std::sort(alive.begin(), alive.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
    for (const auto& allocation : alive) listener.allocated(allocation);
  }
  listeners_.push_back(&listener);
  listening_.store(true, std::memory_order_release);
}

void Registry::unsubscribe(Listener& listener) {
  std::lock_guard lock(mutex_);
  std::erase(listeners_, &listener);
  listening_.store(!listeners_.empty(), std::memory_order_release);
}

void Registry::allocated(c10::Device device, const void* address, Bytes bytes, ledger::StreamId stream) noexcept {
  if (address == nullptr) return;
  std::lock_guard lock(mutex_);
  auto& of_device = blocks_of(normal(device));
  const auto [entry, is_new] = of_device.blocks.emplace(number(address), Block{});
  if (!is_new) {
    // Its free was missed, or another source reported it first. The new values are correct in both cases.
    of_device.total -= entry->second.bytes;
    for (auto* listener : listeners_) listener->freed(entry->second.id);
  }
  entry->second = {ledger::AllocationId{++last_id_}, bytes, stream};
  of_device.total += bytes;
  const Allocation allocation{entry->second.id, of_device.device, bytes, stream, number(address)};
  for (auto* listener : listeners_) listener->allocated(allocation);
}

void Registry::freed(c10::Device device, const void* address) noexcept {
  std::lock_guard lock(mutex_);
  auto& of_device = blocks_of(normal(device));
  const auto entry = of_device.blocks.find(number(address));
  if (entry == of_device.blocks.end()) return;
  const Block block = entry->second;
  of_device.blocks.erase(entry);
  of_device.total -= block.bytes;
  for (auto* listener : listeners_) listener->freed(block.id);
}

void Registry::resized(c10::Device device, const void* address, Bytes bytes) noexcept {
  std::lock_guard lock(mutex_);
  resize(blocks_of(normal(device)), address, bytes);
}

void Registry::resize(DeviceBlocks& of_device, const void* address, Bytes bytes) noexcept {
  const auto entry = of_device.blocks.find(number(address));
  if (entry == of_device.blocks.end()) return;
  of_device.total += bytes - entry->second.bytes;
  entry->second.bytes = bytes;
  for (auto* listener : listeners_) listener->resized(entry->second.id, bytes);
}

bool Registry::settle(c10::Device device, const void* address, Bytes bytes, Bytes total) noexcept {
  std::lock_guard lock(mutex_);
  auto& of_device = blocks_of(normal(device));
  if (of_device.total == total) return true;
  if (address == nullptr || total < of_device.total) return false;
  resize(of_device, address, bytes + (total - of_device.total));
  return true;
}

void Registry::segment(c10::Device device, std::int64_t delta) noexcept {
  std::lock_guard lock(mutex_);
  auto& of_device = blocks_of(normal(device));
  of_device.reserved += static_cast<Bytes>(delta);
  for (auto* listener : listeners_) listener->segment(of_device.device, delta);
}

void Registry::defect(const char* what) noexcept {
  std::lock_guard lock(mutex_);
  for (auto* listener : listeners_) listener->defect(what);
}

std::optional<Registry::Found> Registry::find(c10::Device device, const void* address) const {
  std::lock_guard lock(mutex_);
  const auto* of_device = known_blocks_of(normal(device));
  if (of_device == nullptr) return std::nullopt;
  const auto entry = of_device->blocks.find(number(address));
  if (entry == of_device->blocks.end()) return std::nullopt;
  return Found{entry->second.id, entry->second.bytes};
}

Bytes Registry::total(c10::Device device) const {
  std::lock_guard lock(mutex_);
  const auto* of_device = known_blocks_of(normal(device));
  return of_device == nullptr ? 0 : of_device->total;
}

}  // namespace plimsoll::capture
