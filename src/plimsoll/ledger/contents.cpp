#include "plimsoll/ledger/contents.h"

#include <map>

namespace plimsoll::ledger {

Balance Contents::balance() const {
  Balance sum;
  for (const Allocation& allocation : allocations) sum.add(allocation.category, allocation.bytes);
  return sum;
}

std::vector<OwnerBalance> Contents::by_owner() const {
  std::map<OwnerId, Balance> sums;
  for (const Allocation& allocation : allocations) sums[allocation.owner].add(allocation.category, allocation.bytes);
  std::vector<OwnerBalance> result;
  result.reserve(sums.size());
  for (const auto& [owner, balance] : sums) result.push_back({owner, balance});
  return result;
}

}  // namespace plimsoll::ledger
