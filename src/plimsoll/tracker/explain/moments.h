#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "plimsoll/base/bytes.h"
#include "plimsoll/ledger/ledger.h"
#include "plimsoll/tracker/snapshot.h"

namespace plimsoll::inline tracker {

template <class Use>
void for_each_device(const ledger::Ledger& ledger, Use&& use) {
  for (std::size_t index = 0; index < ledger.devices(); ++index)
    use(ledger::DeviceId{static_cast<std::uint16_t>(index)});
}

/// The bytes by category at one instant, or of each device at its own. Leaves out devices that hold nothing.
Snapshot snapshot_of(const ledger::Ledger& ledger);
Snapshot snapshot_of(const std::vector<ledger::Peak>& peaks, const ledger::Ledger& ledger);

/// Hundreds of such snapshots per step, packed one after the other in memory that clear() keeps for the next step.
class Moments {
 public:
  using Place = std::size_t;

  /// Now.
  Place add(const ledger::Ledger& ledger);
  Place add(const std::vector<ledger::Peak>& peaks, const ledger::Ledger& ledger);
  Snapshot at(Place place, const ledger::Ledger& ledger) const;
  void clear() { packed_.clear(); }

 private:
  void add_device(ledger::DeviceId device, const ledger::Balance& balance, std::size_t categories);

  /// For each moment the number of devices; for each of these its id, the number of categories, and their bytes.
  std::vector<Bytes> packed_;
};

}  // namespace plimsoll::inline tracker
