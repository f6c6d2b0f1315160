#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "plimsoll/base/bytes.h"
#include "plimsoll/ledger/ids.h"

namespace plimsoll::ledger {

/// A live allocation, as it has been since the event `begin`.
struct LiveRecord {
  AllocationId id{};
  Bytes bytes = 0;
  Sequence begin{};
  StreamId stream{};
  OwnerId owner{};
  DeviceId device{};
  CategoryId category{};
};

/// The live allocations, found by id: an array of records without gaps, and a hash table of their indices (open
/// addressing, linear probing, backward shift, so that erase leaves no marks). A pointer to a record is valid until the
/// next insert or erase.
class LiveTable {
 public:
  LiveTable() : slots_(kLeastSlots, kEmpty) {}

  std::size_t count() const { return records_.size(); }
  const std::vector<LiveRecord>& records() const { return records_; }

  LiveRecord* find(AllocationId id) { return const_cast<LiveRecord*>(static_cast<const LiveTable*>(this)->find(id)); }
  const LiveRecord* find(AllocationId id) const {
    for (std::size_t slot = home(id);; slot = next(slot)) {
      if (slots_[slot] == kEmpty) return nullptr;
      if (records_[slots_[slot]].id == id) return &records_[slots_[slot]];
    }
  }

  /// REQUIRES: the table has no record with that id.
  void insert(const LiveRecord& record) {
    if ((records_.size() + 1) * 2 > slots_.size()) grow();
    records_.push_back(record);
    put(static_cast<Index>(records_.size() - 1));
  }

  /// REQUIRES: `record` points into this table.
  void erase(LiveRecord* record) {
    const Index index = static_cast<Index>(record - records_.data());
    close_gap(slot_of(index));
    const Index last = static_cast<Index>(records_.size() - 1);
    if (index != last) {
      slots_[slot_of(last)] = index;
      records_[index] = records_[last];
    }
    records_.pop_back();
  }

  std::size_t memory() const { return records_.capacity() * sizeof(LiveRecord) + slots_.capacity() * sizeof(Index); }

 private:
  using Index = std::uint32_t;
  static constexpr Index kEmpty = ~Index{0};
  static constexpr std::size_t kLeastSlots = 64;

  std::size_t mask() const { return slots_.size() - 1; }
  std::size_t next(std::size_t slot) const { return (slot + 1) & mask(); }
  /// Takes the upper bits of a product: ids are consecutive, or are addresses with equal low bits.
  std::size_t home(AllocationId id) const { return (value(id) * 0x9E3779B97F4A7C15u) >> shift_; }

  std::size_t slot_of(Index index) const {
    std::size_t slot = home(records_[index].id);
    while (slots_[slot] != index) slot = next(slot);
    return slot;
  }

  void put(Index index) {
    std::size_t slot = home(records_[index].id);
    while (slots_[slot] != kEmpty) slot = next(slot);
    slots_[slot] = index;
  }

  /// Moves each entry that was pushed past `gap` back into it.
  void close_gap(std::size_t gap) {
    for (std::size_t slot = next(gap); slots_[slot] != kEmpty; slot = next(slot)) {
      const std::size_t wanted = home(records_[slots_[slot]].id);
      if (((slot - wanted) & mask()) >= ((slot - gap) & mask())) {
        slots_[gap] = slots_[slot];
        gap = slot;
      }
    }
    slots_[gap] = kEmpty;
  }

  void grow() {
    slots_.assign(slots_.size() * 2, kEmpty);
    --shift_;
    for (Index index = 0; index < records_.size(); ++index) put(index);
  }

  std::vector<LiveRecord> records_;
  std::vector<Index> slots_;  ///< A power of two in number; at most half are used.
  int shift_ = 64 - std::countr_zero(kLeastSlots);
};

}  // namespace plimsoll::ledger
