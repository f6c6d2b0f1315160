#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <type_traits>

#include "plimsoll/pretend/cublaslt/abi.h"

namespace plimsoll::pretend::cublaslt {

enum LayoutAttribute : int {
  kLayoutType = 0,
  kLayoutOrder = 1,
  kLayoutRows = 2,
  kLayoutCols = 3,
  kLayoutLeadingDimension = 4,
  kLayoutBatchCount = 5,
  kLayoutStridedBatchOffset = 6,
  kLayoutPlaneOffset = 7,
  kLayoutBatchMode = 8,
};

enum MatmulAttribute : int {
  kMatmulComputeType = 0,
  kMatmulScaleType = 1,
  kMatmulPointerMode = 2,
  kMatmulTransA = 3,
  kMatmulTransB = 4,
  kMatmulTransC = 5,
  kMatmulFillMode = 6,
  kMatmulEpilogue = 7,
};

enum PreferenceAttribute : int { kPreferenceSearchMode = 0, kPreferenceMaxWorkspaceBytes = 1 };

enum TransformAttribute : int {
  kTransformScaleType = 0,
  kTransformPointerMode = 1,
  kTransformTransA = 2,
  kTransformTransB = 3
};

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

/// The four kinds of descriptor.
template <std::uint32_t kTag>
struct Descriptor : Object<kTag> {
  Attributes attributes;
};
using MatrixLayout = Descriptor<0x4c415931U>;
using MatmulDescriptor = Descriptor<0x4d4d4431U>;
using Preference = Descriptor<0x50524631U>;
using TransformDescriptor = Descriptor<0x54465231U>;

using Descriptors = Objects<kInvalidValue, kInvalidValue, kAllocFailed>;

}  // namespace plimsoll::pretend::cublaslt
