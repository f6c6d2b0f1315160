#pragma once

#include <vector>

#include "plimsoll/base/bytes.h"
#include "plimsoll/ledger/balance.h"
#include "plimsoll/ledger/ids.h"

namespace plimsoll::ledger {

/// An allocation as it was at one instant.
struct Allocation {
  AllocationId id{};
  Bytes bytes = 0;
  CategoryId category{};
  OwnerId owner{};
  StreamId stream{};

  friend bool operator==(const Allocation&, const Allocation&) = default;
};

/// What an owner held at one instant: in all, and by category.
struct OwnerBalance {
  OwnerId owner{};
  Balance balance;

  friend bool operator==(const OwnerBalance&, const OwnerBalance&) = default;
};

/// All that was alive on one device at one instant, by id.
struct Contents {
  std::vector<Allocation> allocations;

  /// Counted from the allocations.
  Balance balance() const;
  /// Who held how much, by owner id. An owner who held nothing but allocations of zero bytes is among them.
  std::vector<OwnerBalance> by_owner() const;

  friend bool operator==(const Contents&, const Contents&) = default;
};

}  // namespace plimsoll::ledger
