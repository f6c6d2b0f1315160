#pragma once

#include <algorithm>
#include <cstdint>

#include "plimsoll/pretend/cusolver/abi.h"

/// How much workspace each routine asks for, in elements of the matrix. cuSOLVER publishes no formulas and its answers
/// differ between versions and cards: these are estimates. Where LAPACK has the routine, it is LAPACK's optimal size
/// with blocks of 64; the Jacobi methods, which LAPACK's interface does not cover, keep a copy of the matrix and the
/// vectors that they rotate. All grow as the real ones do; none is to be taken for one of them.
///
/// Every size is at least 1: torch allocates what it is told.
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

/// Reduction to tridiagonal form, then divide and conquer with the eigenvectors' two copies.
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
