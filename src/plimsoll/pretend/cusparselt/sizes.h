#pragma once

#include "plimsoll/base/bytes.h"
#include "plimsoll/pretend/cuda/library_types.h"
#include "plimsoll/pretend/cusparselt/abi.h"

namespace plimsoll::pretend::cusparselt {

/// The bytes of a compressed 2:4 sparse matrix: half of the values, and two index bits for each of them. torch relies
/// on it: 9/16 of the dense bytes for 16-bit values; for 8-bit values it allocates 10/16. Of 32-bit values 1 of 2 is
/// kept, with the index bits of two 16-bit values.
inline Bytes compressed_bytes(const MatrixDescriptor& matrix) {
  const Bytes dense = static_cast<Bytes>(matrix.rows) * static_cast<Bytes>(matrix.cols) *
                      static_cast<Bytes>(matrix.batch_count) * bits_of(matrix.value_type) / 8;
  return dense * (bits_of(matrix.value_type) <= 8 ? 10 : 9) / 16;
}

/// The scratch memory of a compression: the index bits. An estimate; the real size is not published.
inline Bytes compression_buffer_bytes(const MatrixDescriptor& matrix) {
  const Bytes dense = static_cast<Bytes>(matrix.rows) * static_cast<Bytes>(matrix.cols) *
                      static_cast<Bytes>(matrix.batch_count) * bits_of(matrix.value_type) / 8;
  return compressed_bytes(matrix) - dense / 2;
}

/// The workspace of a product: 0, as an algorithm without split-k needs. With split-k the library would need memory for
/// partial results.
inline Bytes matmul_workspace_bytes() { return 0; }

}  // namespace plimsoll::pretend::cusparselt
