#pragma once

#include "plimsoll/base/bytes.h"
#include "plimsoll/pretend/cuda/library_types.h"
#include "plimsoll/pretend/cusparselt/abi.h"

namespace plimsoll::pretend::cusparselt {

/// The bytes of a 2:4 sparse matrix after compression: half of the values, and two bits of place for each of them.
/// Torch counts on it: 9/16 of the dense bytes for values of 16 bits, and it allocates 10/16 for those of 8. Values of
/// 32 bits are chosen 1 of 2, with as many place bits as two of 16 have.
inline Bytes compressed_bytes(const MatrixDescriptor& matrix) {
  const Bytes dense = static_cast<Bytes>(matrix.rows) * static_cast<Bytes>(matrix.cols) *
                      static_cast<Bytes>(matrix.batch_count) * bits_of(matrix.value_type) / 8;
  return dense * (bits_of(matrix.value_type) <= 8 ? 10 : 9) / 16;
}

/// The scratch memory of a compression. Its size is not published; this is that of the places alone.
inline Bytes compression_buffer_bytes(const MatrixDescriptor& matrix) {
  const Bytes dense = static_cast<Bytes>(matrix.rows) * static_cast<Bytes>(matrix.cols) *
                      static_cast<Bytes>(matrix.batch_count) * bits_of(matrix.value_type) / 8;
  return compressed_bytes(matrix) - dense / 2;
}

/// The workspace of a product: none, which is what an algorithm without split-k needs. With split-k the library would
/// ask for partial results.
inline Bytes matmul_workspace_bytes() { return 0; }

}  // namespace plimsoll::pretend::cusparselt
