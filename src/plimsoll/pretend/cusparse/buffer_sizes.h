#pragma once

#include <algorithm>
#include <cstdint>

#include "plimsoll/base/bytes.h"
#include "plimsoll/pretend/cuda/library_types.h"
#include "plimsoll/pretend/cusparse/abi.h"

/// The buffer size of each routine. cuSPARSE publishes no formulas: these are estimates from the data that the
/// algorithm needs (row counters, index copies, a copy of the right-hand sides), rounded to 256 bytes as in the
/// library. torch's allocator rounds to 512 bytes, so the small ones do not affect its numbers. Never 0: two-call
/// routines distinguish the query from the work by the buffer.
namespace plimsoll::pretend::cusparse::buffers {

inline constexpr Bytes kIndex = 4;

inline Bytes rounded(Bytes bytes) { return std::max(round_up(bytes, 256), Bytes{256}); }
inline Bytes count(std::int64_t n) { return n > 0 ? static_cast<Bytes>(n) : 0; }

/// SpMV, SpMM and SDDMM: partial sums at the borders of thread blocks, at most a word for each row.
inline Bytes product(const SparseMatrix& matrix) { return rounded(kIndex * count(matrix.rows)); }

/// Triangular solves: the levels of the dependency graph, a counter and an order for each row, and a copy of the
/// right-hand sides, if several.
inline Bytes solve_vector(const SparseMatrix& matrix) { return rounded(3 * kIndex * count(matrix.rows)); }
inline Bytes solve_matrix(const SparseMatrix& matrix, const DenseMatrix& right) {
  return solve_vector(matrix) + rounded(count(right.rows) * count(right.cols) * bytes_of(right.value_type) *
                                        static_cast<Bytes>(std::max(right.batch_count, 1)));
}

/// SpGEMM, first buffer: the number of products of each row. The second buffer holds the products, whose number depends
/// on the data; its size is that of no products.
inline Bytes spgemm_rows(const SparseMatrix& a) { return rounded(kIndex * (count(a.rows) + count(a.nnz))); }
inline Bytes spgemm_products() { return rounded(1); }

/// The same for block matrices of the older interface, in blocks.
inline Bytes block_solve(int block_rows, int block_dimension, int right_sides, Bytes element) {
  return rounded(3 * kIndex * count(block_rows)) +
         rounded(count(block_rows) * count(block_dimension) * count(right_sides) * element);
}

/// Sorting: a second copy of keys and permutation for a radix sort, and its counters.
inline Bytes sort(int rows, int nnz) { return rounded(2 * kIndex * count(nnz) + kIndex * count(rows)); }

/// csrgeam2: a counter for each row of the sum.
inline Bytes add(int rows) { return rounded(kIndex * (count(rows) + 1)); }

}  // namespace plimsoll::pretend::cusparse::buffers
