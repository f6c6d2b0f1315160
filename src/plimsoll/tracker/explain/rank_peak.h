#pragma once

#include "plimsoll/tracker/snapshot.h"

namespace plimsoll::inline tracker {

/// The peak of one rank.
struct RankPeak {
  int rank = 0;
  Snapshot peak;
};

/// The rank of the default process group with the highest total on a device of this type; the first if several are
/// equal. All ranks call it and get the same answer. The ranks exchange peaks through the group's store, without device
/// memory. With the backend "fake", where one process is the whole world, the answer is its own peak.
RankPeak highest_of_ranks(const Snapshot& own, std::string_view device_type);

}  // namespace plimsoll::inline tracker
