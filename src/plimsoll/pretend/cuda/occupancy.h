#pragma once

#include <algorithm>

#include "plimsoll/pretend/model/profile.h"

namespace plimsoll::pretend {

/// The register count of every kernel: kernel binaries are not read.
inline constexpr int kRegistersPerThread = 32;

/// Blocks that fit on a multiprocessor, limited by threads and shared memory.
inline int active_blocks(const Profile& profile, int threads_per_block, Bytes shared_per_block) {
  const int by_threads = profile.threads_per_multiprocessor / std::max(threads_per_block, 1);
  const Bytes shared = shared_per_block + 1024;  // Reserved by the system for each block.
  const int by_shared = static_cast<int>(profile.shared_per_multiprocessor / shared);
  return std::clamp(std::min(by_threads, by_shared), 1, profile.blocks_per_multiprocessor);
}

}  // namespace plimsoll::pretend
