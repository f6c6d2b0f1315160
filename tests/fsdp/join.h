#pragma once

#include <chrono>

#include "distributed/ranks.h"
#include "plimsoll/distributed/process_group.h"

namespace small {

/// Makes a rank of on_ranks() a member of a gloo group, which becomes the default group.
inline void join(const ranks::Rank& rank,
                 std::chrono::milliseconds timeout = plimsoll::distributed::InitOptions().timeout) {
  plimsoll::distributed::init_process_group(
      {.backend = "gloo", .store = rank.store(), .rank = rank.rank, .world_size = rank.size, .timeout = timeout});
}

}  // namespace small
