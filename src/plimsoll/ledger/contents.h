#pragma once

#include <vector>

#include "plimsoll/base/bytes.h"
#include "plimsoll/ledger/balance.h"
#include "plimsoll/ledger/ids.h"

namespace plimsoll::ledger {

/// An allocation at one instant.
struct Allocation {
  AllocationId id{};
  Bytes bytes = 0;
  CategoryId category{};
  OwnerId owner{};
  StreamId stream{};

  friend bool operator==(const Allocation&, const Allocation&) = default;
};

/// The bytes of an owner at one instant: the total, and the bytes of each category.
struct OwnerBalance {
  OwnerId owner{};
  Balance balance;

  friend bool operator==(const OwnerBalance&, const OwnerBalance&) = default;
};

/// All live allocations of one device at one instant, by id.
struct Contents {
  std::vector<Allocation> allocations;

  /// Counted from the allocations.
  Balance balance() const;
  /// The bytes of each owner, by owner id. Owners that have only allocations of zero bytes are included.
  std::vector<OwnerBalance> by_owner() const;

  friend bool operator==(const Contents&, const Contents&) = default;
};

}  // namespace plimsoll::ledger
