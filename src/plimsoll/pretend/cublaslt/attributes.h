#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <type_traits>

#include "plimsoll/pretend/cublaslt/abi.h"

namespace plimsoll::pretend::cublaslt {

/// The attributes of a descriptor: numbered values of 1 to 8 bytes, returned as they were set. Unknown numbers are kept
/// too, so that a newer torch works. Thread-safe.
class Attributes {
 public:
  template <typename T>
  void set(int attribute, T value) {
    static_assert(std::is_trivially_copyable_v<T>);
    set(attribute, &value, sizeof value);
  }

  int set(int attribute, const void* value, std::size_t bytes) {
    std::lock_guard lock(mutex_);
    if (attribute < 0 || attribute >= kCount || value == nullptr || bytes == 0 || bytes > kBytes) return kInvalidValue;
    Entry& entry = entries_[static_cast<std::size_t>(attribute)];
    if (entry.bytes != 0 && entry.bytes != bytes) return kInvalidValue;
    std::memcpy(entry.value, value, bytes);
    entry.bytes = bytes;
    return kSuccess;
  }

  /// `written` may be null, unless `bytes` is 0, which queries only the size.
  int get(int attribute, void* value, std::size_t bytes, std::size_t* written) const {
    std::lock_guard lock(mutex_);
    if (attribute < 0 || attribute >= kCount) return kInvalidValue;
    const Entry& entry = entries_[static_cast<std::size_t>(attribute)];
    if (entry.bytes == 0) return kInvalidValue;
    if (bytes == 0) {
      if (written == nullptr) return kInvalidValue;
    } else {
      if (value == nullptr || bytes != entry.bytes) return kInvalidValue;
      std::memcpy(value, entry.value, bytes);
    }
    if (written != nullptr) *written = entry.bytes;
    return kSuccess;
  }

  /// The value, or 0 if it is not set.
  template <typename T>
  T value(int attribute) const {
    T result{};
    get(attribute, &result, sizeof result, nullptr);
    return result;
  }

 private:
  static constexpr int kCount = 64;
  static constexpr std::size_t kBytes = 8;
  struct Entry {
    unsigned char value[kBytes];
    std::size_t bytes;
  };

  mutable std::mutex mutex_;
  std::array<Entry, kCount> entries_{};
};

}  // namespace plimsoll::pretend::cublaslt
