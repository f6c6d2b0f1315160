#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace plimsoll::fsdp {

/// The range of a rank's part of a dimension, split like torch.chunk: parts of equal length, then a shorter one, then
/// empty ones. Computed, not split: the cost does not grow with the number of ranks.
struct ChunkRange {
  std::int64_t start;
  std::int64_t length;
  std::int64_t padded_length;  ///< The length of the first part.
};

inline ChunkRange chunk_range(std::int64_t size, int chunks, int index) {
  const std::int64_t padded = (size + chunks - 1) / chunks;
  const std::int64_t start = std::min(size, padded * index);
  return {.start = start, .length = std::min(padded, size - start), .padded_length = padded};
}

inline std::vector<std::int64_t> with_dim(at::IntArrayRef size, std::int64_t dim, std::int64_t length) {
  auto changed = size.vec();
  changed[static_cast<std::size_t>(dim)] = length;
  return changed;
}

inline std::vector<std::int64_t> contiguous_strides(at::IntArrayRef size) {
  std::vector<std::int64_t> strides(size.size(), 1);
  for (std::size_t i = size.size(); i-- > 1;) strides[i - 1] = strides[i] * std::max<std::int64_t>(size[i], 1);
  return strides;
}

}  // namespace plimsoll::fsdp
