#pragma once

#include <algorithm>

#include "plimsoll/pretend/model/profile.h"

namespace plimsoll::pretend {

/// The register count of every kernel: kernel binaries are not read.
inline constexpr int kRegistersPerThread = 32;

/// The version of torch's code that the card runs: the last of its own major version, as in 86 for 8.9. CUB refuses a
/// version that torch is not compiled for.
inline int binary_version(const Profile& profile) {
  const int own = profile.compute_major * 10 + profile.compute_minor;
  for (const int version : {120, 100, 90, 86, 80, 75, 70, 60, 50}) {  // As the wheels of torch 2.5 to 2.13 have them.
    if (version / 10 == own / 10 && version <= own) return version;
  }
  return own;
}

/// Blocks that fit on a multiprocessor, limited by threads and shared memory.
inline int active_blocks(const Profile& profile, int threads_per_block, Bytes shared_per_block) {
  const int by_threads = profile.threads_per_multiprocessor / std::max(threads_per_block, 1);
  const Bytes shared = shared_per_block + 1024;  // Reserved by the system for each block.
  const int by_shared = static_cast<int>(profile.shared_per_multiprocessor / shared);
  return std::clamp(std::min(by_threads, by_shared), 1, profile.blocks_per_multiprocessor);
}

}  // namespace plimsoll::pretend
