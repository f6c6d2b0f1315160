#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/bytes.h"

/// The table of contents of a safetensors file:
///
///     8 bytes   length of the header, little-endian
///     …         the header, JSON: {"__metadata__": {"key": "text"}, "name": {"dtype": "F32", "shape": [2, 3],
///               "data_offsets": [begin, end]}, …}, then spaces up to a multiple of 8
///     …         the tensors' bytes, without holes; offsets count from here
///
/// https://huggingface.co/docs/safetensors describes the format.
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

/// Free-form text stored with the tensors.
using Metadata = std::map<std::string, std::string>;

inline constexpr Bytes kMaximumHeaderBytes = 100'000'000;

/// A tensor to write.
struct TensorSpec {
  std::string name;
  Dtype dtype = Dtype::kF32;
  std::vector<std::int64_t> shape;

  bool operator==(const TensorSpec&) const = default;
};

/// A tensor in a file.
struct TensorInfo {
  std::string name;
  Dtype dtype = Dtype::kF32;
  std::vector<std::int64_t> shape;
  Bytes begin = 0;  ///< Offset of its bytes from the end of the header.
  Bytes end = 0;

  Bytes bytes() const { return end - begin; }
  bool operator==(const TensorInfo&) const = default;
};

struct Header {
  std::vector<TensorInfo> tensors;  ///< In the order of their bytes; empty tensors at one offset by name.
  Metadata metadata;
  Bytes data_begin = 0;  ///< Offset of the tensors' bytes in the file.
};

/// Assigns offsets in the order of Dtype, then of names.
/// Throws InvalidArgument for a repeated or reserved name ("__metadata__") and for a negative or too large shape.
std::vector<TensorInfo> lay_out(std::vector<TensorSpec> tensors);

/// The bytes before the tensors' bytes, including the length.
/// Throws InvalidArgument if a name or a text is not UTF-8, or if the header is longer than kMaximumHeaderBytes.
std::string encode_header(std::span<const TensorInfo> tensors, const Metadata& metadata);

/// Reads and checks the header of a complete `file`: each tensor's bytes lie within the file and have the size of its
/// shape, and each byte belongs to exactly one tensor. Unknown fields of a tensor are ignored, as in Hugging Face's
/// reader; a repeated name, which that reader accepts, is refused.
/// Throws FormatError that begins with `origin` and names the tensor.
Header decode_header(std::span<const std::byte> file, const std::string& origin);

}  // namespace plimsoll::safetensors
