#pragma once

#include <algorithm>
#include <cstdint>

#include "plimsoll/pretend/cusolver/abi.h"

/// The workspace of each routine, in elements of the matrix. cuSOLVER publishes no formulas, and its sizes differ
/// between versions and cards: these are estimates. If LAPACK has the routine, the estimate is LAPACK's optimal size
/// with blocks of 64. The Jacobi methods, which LAPACK does not have, keep a copy of the matrix and of the vectors that
/// they rotate. All grow as the real sizes do, but none is exact.
///
/// Every size is at least 1: torch allocates the returned size.
namespace plimsoll::pretend::cusolver::work {

using Count = std::int64_t;

inline constexpr Count kBlock = 64;

inline Count least(Count elements) { return std::max<Count>(elements, 1); }

inline Count potrf(Count n) { return least(n * kBlock); }
inline Count getrf(Count m, Count n) { return least(std::max(m, n) * kBlock); }
inline Count geqrf(Count /*m*/, Count n) { return least(n * kBlock); }
inline Count orgqr(Count n) { return least(n * kBlock); }
inline Count ormqr(int side, Count m, Count n) { return least((side == kLeft ? n : m) * kBlock); }
inline Count sytrf(Count n) { return least(n * kBlock); }
inline Count sytrs(Count n, Count right_sides) { return least(n * right_sides); }

/// Reduction to tridiagonal form, then divide and conquer with two copies of the eigenvectors.
inline Count syevd(int mode, Count n) {
  return least((mode == kVector ? 2 * n * n + 6 * n + 1 : 2 * n + 1) + n * kBlock);
}
inline Count syevj(Count n) { return least(n * n + 2 * n); }
inline Count syevj_batched(Count n, Count batch) { return least(syevj(n) * batch); }

/// Reduction to bidiagonal form.
inline Count gesvd(Count m, Count n) { return least(3 * std::min(m, n) + (m + n) * kBlock); }
inline Count gesvdj(Count m, Count n) { return least(m * n + n * n + 2 * std::min(m, n)); }
inline Count gesvdj_batched(Count m, Count n, Count batch) { return least(gesvdj(m, n) * batch); }
inline Count gesvda_batched(Count m, Count n, Count batch) { return least((m * n + 2 * n * n) * batch); }

/// Reduction to Hessenberg form on the device; QR iterations and back-substitution on the host, which holds copies of
/// the matrix and of the vectors.
inline Count geev(Count n) { return least(n * n + n * kBlock); }
inline Count geev_host(Count n) { return least(2 * n * n + n * kBlock); }

}  // namespace plimsoll::pretend::cusolver::work
