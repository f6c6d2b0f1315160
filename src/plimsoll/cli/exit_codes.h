#pragma once

namespace plimsoll::cli {

/// All exit codes of the command, except those of signals (128 + the signal's number). `plimsoll run` ends with the
/// script's own code, unless the job did not fit or could not be run. A script may use the same codes, so the document
/// has the reason too. python/plimsoll/api/exit_codes.py has the same table.
inline constexpr int kExitFits = 0;
inline constexpr int kExitFailed = 1;            ///< It could not be run, or its answer could not be written.
inline constexpr int kExitBadUsage = 2;          ///< Wrong command line, or wrong input.
inline constexpr int kExitDoesNotFit = 3;        ///< It was run and needs more memory than the GPU has.
inline constexpr int kExitRanksDiffer = 4;       ///< Reserved: the ranks of a job do not match.
inline constexpr int kExitGrewPastBaseline = 5;  ///< Reserved: a peak is higher than a baseline allows.

}  // namespace plimsoll::cli
