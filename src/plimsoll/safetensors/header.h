#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "plimsoll/base/bytes.h"
#include "plimsoll/safetensors/dtype.h"

/// The table of contents of a safetensors file:
///
///     8 bytes   length of the header, little-endian
///     …         the header, JSON: {"__metadata__": {"key": "text"}, "name": {"dtype": "F32", "shape": [2, 3],
///               "data_offsets": [begin, end]}, …}, then spaces up to a multiple of 8
///     …         the tensors' bytes, without holes; offsets count from here
///
/// https://huggingface.co/docs/safetensors describes the format.

namespace plimsoll::safetensors {

/// Free-form text that travels with the tensors.
using Metadata = std::map<std::string, std::string>;

inline constexpr Bytes kMaximumHeaderBytes = 100'000'000;

/// What a writer is told of a tensor.
struct TensorSpec {
  std::string name;
  Dtype dtype = Dtype::kF32;
  std::vector<std::int64_t> shape;

  bool operator==(const TensorSpec&) const = default;
};

/// What a file says of a tensor.
struct TensorInfo {
  std::string name;
  Dtype dtype = Dtype::kF32;
  std::vector<std::int64_t> shape;
  Bytes begin = 0;  ///< Where its bytes are, counted from the end of the header.
  Bytes end = 0;

  Bytes bytes() const { return end - begin; }
  bool operator==(const TensorInfo&) const = default;
};

struct Header {
  std::vector<TensorInfo> tensors;  ///< In the order of their bytes; empty ones at the same place by name.
  Metadata metadata;
  Bytes data_begin = 0;  ///< Where in the file the tensors' bytes begin.
};

/// Gives each tensor its place: by element type as Dtype says, then by name.
/// Throws InvalidArgument for a name that is given twice or reserved ("__metadata__"), and a shape that is negative or
/// too large.
std::vector<TensorInfo> lay_out(std::vector<TensorSpec> tensors);

/// The bytes before the tensors', the length included.
/// Throws InvalidArgument where a name or a text is not UTF-8, or the header were longer than kMaximumHeaderBytes.
std::string encode_header(std::span<const TensorInfo> tensors, const Metadata& metadata);

/// Reads the header of a whole `file` and checks everything it says: after this, every tensor's bytes lie within the
/// file, are as many as its shape needs, overlap no other's, and no byte belongs to none. Fields of a tensor that the
/// format does not know are passed over, as Hugging Face's reader does; a name that stands twice, which that one lets
/// pass, is refused. Throws FormatError that begins with `origin` and names the tensor.
Header decode_header(std::span<const std::byte> file, const std::string& origin);

}  // namespace plimsoll::safetensors
