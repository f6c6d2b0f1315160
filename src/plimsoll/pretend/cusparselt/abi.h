#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "plimsoll/base/bytes.h"
#include "plimsoll/pretend/model/object.h"

namespace plimsoll::pretend::cusparselt {

/// cuSPARSELt uses cuSPARSE's codes.
enum Status : int { kSuccess = 0, kNotInitialized = 1, kAllocFailed = 2, kInvalidValue = 3, kNotSupported = 10 };

enum AlgorithmAttribute : int {
  kAlgorithmId = 0,
  kAlgorithmMaxId = 1,
  kSearchIterations = 2,
  kSplitK = 3,
  kSplitKMode = 4,
  kSplitKBuffers = 5,
};

/// The caller owns the memory of every handle, descriptor and plan: 512 bytes each in version 0.10 (CUDA 13), 11,024
/// unaligned bytes in 0.6 (CUDA 12). Our records must fit the smaller size.
inline constexpr std::size_t kOpaqueBytes = 512;

/// A record in the caller's memory, written and read by copying.
template <typename T>
void store(void* opaque, const T& record) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= kOpaqueBytes);
  std::memcpy(opaque, &record, sizeof record);
}

/// Returns false if the memory has no record of T's kind.
template <typename T>
bool load(const void* opaque, T* record) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= kOpaqueBytes);
  if (opaque == nullptr) return false;
  std::memcpy(record, opaque, sizeof *record);
  return record->magic == T::kAlive;
}

/// Clears the record in the caller's memory, so that it is not a descriptor any more.
template <typename T>
int destroy(const void* opaque) {
  T record;
  if (!load(opaque, &record)) return kInvalidValue;
  record.magic = 0;
  store(const_cast<void*>(opaque), record);
  return kSuccess;
}

struct Handle {
  static constexpr std::uint64_t kAlive = 0x73704c7448616e64U;
  std::uint64_t magic = kAlive;
  int device = 0;
};

inline bool initialized(const void* handle) {
  Handle record;
  return load(handle, &record);
}

struct MatrixDescriptor {
  static constexpr std::uint64_t kAlive = 0x73704c744d617431U;
  std::uint64_t magic = kAlive;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t leading_dimension = 0;
  std::int64_t batch_stride = 0;
  int batch_count = 1;
  int value_type = 0;
  int order = 0;
  int structured = 0;  ///< 2:4 sparse.
};

/// Attributes are 4- or 8-byte values, kept by number.
struct MatmulDescriptor {
  static constexpr std::uint64_t kAlive = 0x73704c744d6d3131U;
  static constexpr int kAttributes = 24;
  std::uint64_t magic = kAlive;
  Gemm gemm;
  MatrixDescriptor sparse;  ///< The sparse one of the two factors.
  std::uint64_t attributes[kAttributes] = {};
  std::uint8_t attribute_bytes[kAttributes] = {};
};

struct AlgorithmSelection {
  static constexpr std::uint64_t kAlive = 0x73704c74416c6731U;
  static constexpr int kAttributes = 6;
  std::uint64_t magic = kAlive;
  int attributes[kAttributes] = {};
};

struct Plan {
  static constexpr std::uint64_t kAlive = 0x73704c74506c6131U;
  std::uint64_t magic = kAlive;
  Gemm gemm;
  MatrixDescriptor sparse;
  /// The caller's selection, in which a search stores its choice, as in the library. It lives as long as the plan.
  void* selection = nullptr;
};

}  // namespace plimsoll::pretend::cusparselt
