#pragma once

#include "plimsoll/tracker/snapshot.h"

namespace plimsoll {

/// Where one rank's memory stood at its highest.
struct RankPeak {
  int rank = 0;
  Snapshot peak;
};

/// Of the ranks of the default process group, the one with the highest total on any of its devices of that type; the
/// first of several. All ranks call it and get the same answer: the peaks are exchanged through the group's store, and
/// take no memory of a device. Where one process stands for a world (backend "fake"), its own is all there is.
RankPeak highest_of_ranks(const Snapshot& own, std::string_view device_type);

}  // namespace plimsoll
