#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "plimsoll/base/bytes.h"

namespace plimsoll::safetensors {

/// The element types of a file. Writers (ours and Hugging Face's) order tensors by type, the last type first: so every
/// tensor begins at a multiple of its element's size.
enum class Dtype : std::uint8_t {
  kBool,
  kU8,
  kI8,
  kF8E5M2,
  kF8E4M3,
  kI16,
  kU16,
  kF16,
  kBF16,
  kI32,
  kU32,
  kF32,
  kF64,
  kI64,
  kU64,
};
inline constexpr int kDtypes = 15;

/// The name in files: "BF16", "F8_E4M3".
std::string_view name_of(Dtype dtype);
/// Absent for an unknown name.
std::optional<Dtype> dtype_named(std::string_view name);

Bytes bytes_per_element(Dtype dtype);
/// The size of a tensor; no dimensions mean a scalar. Absent if a dimension is negative, or if a product of the first
/// dimensions overflows 64 bits even though a later one is zero: Hugging Face's reader refuses that too.
std::optional<Bytes> tensor_bytes(Dtype dtype, std::span<const std::int64_t> shape);

}  // namespace plimsoll::safetensors
