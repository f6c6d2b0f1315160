#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "plimsoll/base/bytes.h"
#include "plimsoll/ledger/contents.h"
#include "plimsoll/ledger/ids.h"

namespace plimsoll::ledger {

/// An allocation as it was from the event `begin` until before the event `end`, which freed, resized or reclassified
/// it.
struct Version {
  Allocation allocation;
  Sequence begin{};
  Sequence end{};

  bool covers(Sequence instant) const { return begin <= instant && instant < end; }
};

/// What was alive on a device at instants that somebody still asks about, though it is not alive now.
///
///     instant kept:       p1         p2
///     version        [-------)              kept for p1
///     version             [----)            between them: forgotten at the next collection
///     version                      [---)    begun after the newest: never enters
///
/// A version enters when it ends, if it began no later than the newest kept instant: one comparison. Those that cover
/// no kept instant go when the history has doubled, so that an event costs O(1) and the history holds at most about
/// twice what it must.
class History {
 public:
  /// From now on what covers `instant` is kept, until a collection without it.
  /// REQUIRES: nothing that covered `instant` has ended before this call.
  void keep(Sequence instant) { newest_ = std::max(newest_, instant); }

  void ended(const Version& version) {
    if (version.begin <= newest_) versions_.push_back(version);
  }

  bool wants_collection() const { return versions_.size() >= collect_at_; }
  /// Forgets all that covers none of `kept`. `now` is the newest event.
  void collect(std::vector<Sequence> kept, Sequence now);
  /// Whether an instant that was kept once, and is not now, could have lost a version in a collection. What a
  /// collection forgets has ended before it, so later instants are whole.
  bool may_have_forgotten(Sequence instant) const { return instant < collected_; }

  const std::vector<Version>& versions() const { return versions_; }
  std::size_t memory() const { return versions_.capacity() * sizeof(Version); }

 private:
  static constexpr std::size_t kLeastCollection = 1024;

  std::vector<Version> versions_;
  Sequence newest_{};
  Sequence collected_{};
  std::size_t collect_at_ = kLeastCollection;
};

}  // namespace plimsoll::ledger
