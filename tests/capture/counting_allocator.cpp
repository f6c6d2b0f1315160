#include "capture/counting_allocator.h"

#include <c10/core/Allocator.h>

#include <atomic>
#include <map>
#include <mutex>

namespace plimsoll::capture {

namespace {

std::mutex mutex;
std::map<void*, std::size_t>& sizes() {
  static auto* map = new std::map<void*, std::size_t>;
  return *map;
}
std::atomic<std::size_t> counted{0};
c10::Allocator* below = nullptr;

void release(void* address) {
  if (address == nullptr) return;  // oneDNN frees the null address of an empty allocation.
  {
    std::lock_guard lock(mutex);
    const auto entry = sizes().find(address);
    counted -= entry->second;
    sizes().erase(entry);
  }
  below->raw_deleter()(address);
}

class CountingAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    auto pointer = below->allocate(bytes);
    if (pointer.get() == nullptr) return pointer;
    std::lock_guard lock(mutex);
    sizes()[pointer.get()] = bytes;
    counted += bytes;
    void* const address = pointer.release_context();
    return {address, address, &release, c10::Device(c10::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* destination, const void* source, std::size_t bytes) const override {
    default_copy_data(destination, source, bytes);
  }
};

const bool installed = [] {
  below = c10::GetAllocator(c10::kCPU);
  c10::SetAllocator(c10::kCPU, new CountingAllocator);
  return true;
}();

}  // namespace

std::size_t counted_cpu_bytes() { return counted; }

}  // namespace plimsoll::capture
