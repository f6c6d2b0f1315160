#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "plimsoll/base/bytes.h"
#include "plimsoll/ledger/contents.h"
#include "plimsoll/ledger/ids.h"

namespace plimsoll::ledger {

/// An allocation from the event `begin` until before the event `end`, which freed, resized or reclassified it.
struct Version {
  Allocation allocation;
  Sequence begin{};
  Sequence end{};

  bool covers(Sequence instant) const { return begin <= instant && instant < end; }
};

/// Allocations that are gone now, but were alive at an instant that is still kept.
///
///     instant kept:       p1         p2
///     version        [-------)              kept for p1
///     version             [----)            covers no instant: removed at the next collection
///     version                      [---)    begun after p2: never stored
///
/// A version is stored when it ends, if it began no later than the newest kept instant: one comparison. Versions that
/// cover no kept instant are removed each time the history has doubled. So an event costs O(1), and the history holds
/// at most about twice the versions that it needs.
class History {
 public:
  /// Keeps the versions that cover `instant`, until a collection without `instant`.
  /// REQUIRES: nothing that covered `instant` has ended before this call.
  void keep(Sequence instant) { newest_ = std::max(newest_, instant); }

  void ended(const Version& version) {
    if (version.begin <= newest_) versions_.push_back(version);
  }

  bool wants_collection() const { return versions_.size() >= collect_at_; }
  /// Removes all versions that cover no instant of `kept`. `now` is the newest event.
  void collect(std::vector<Sequence> kept, Sequence now);
  /// Whether a collection may have removed a version that covered `instant`, after `instant` was no longer kept. A
  /// collection removes only versions that ended before it, so later instants are complete.
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
