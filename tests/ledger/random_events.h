#pragma once

#include <cstdint>
#include <deque>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "plimsoll/ledger/event.h"
#include "plimsoll/ledger/ids.h"

namespace plimsoll::ledger {

/// A random stream of events: the patterns of training (rises and falls on several devices, modules that recur and
/// close out of order, steps, phases, late names) and misuse.
class RandomEvents {
 public:
  explicit RandomEvents(std::uint64_t seed) : random_(seed) {}

  Event next() {
    if (devices_ == 0 || (devices_ < 3 && chance(2000))) return named(NameKind::kDevice, devices_);
    if (owners_ < 40 && chance(300)) return named(NameKind::kOwner, owners_);
    if (categories_ < 11 && chance(5000)) return named(NameKind::kCategory, categories_);
    if (phases_ < 6 && chance(5000)) return named(NameKind::kPhase, phases_);
    if (chance(50)) return misuse();
    if (chance(700)) return {.kind = Event::Kind::kStepBegun};
    if (chance(8000)) return {.kind = Event::Kind::kRunPeakReset};
    if (chance(150)) return {.kind = Event::Kind::kPhase, .phase = PhaseId(below(phases_))};
    if (chance(30)) return open_.size() < 12 && chance(2) ? enter() : leave();
    if (chance(40)) return segment();
    if (chance(400)) ramping_ = !ramping_;
    if (chance(4) && !alive_.empty()) return change();
    const bool room = alive_.size() < 150;
    if (alive_.empty() || (room && !chance(ramping_ ? 5 : 2))) return allocate();
    return free();
  }

 private:
  std::uint64_t below(std::uint64_t limit) { return random_() % limit; }
  bool chance(std::uint64_t one_in) { return below(one_in) == 0; }
  AllocationId some_alive() { return alive_[below(alive_.size())]; }
  CategoryId some_category() { return CategoryId(below(categories_)); }
  OwnerId some_owner() { return OwnerId(below(owners_)); }

  Event named(NameKind kind, std::uint64_t& count) {
    const std::string& name = names_.emplace_back("name " + std::to_string(count++));
    return {.kind = Event::Kind::kNamed, .name_kind = kind, .name = name};
  }

  Bytes some_bytes() {
    if (chance(20)) return 0;
    return chance(3) ? below(5000) : 512 * below(4000);
  }

  Event allocate() {
    // Consecutive ids, ids that look like addresses, and random ids.
    last_id_ = chance(50) ? random_() : last_id_ + (chance(10) ? 4096 : 1);
    alive_.push_back(AllocationId{last_id_});
    return {.kind = Event::Kind::kAllocated,
            .category = some_category(),
            .device = DeviceId(below(devices_)),
            .owner = some_owner(),
            .id = alive_.back(),
            .bytes = some_bytes(),
            .stream = StreamId(static_cast<std::int64_t>(below(3)) - 1)};
  }

  Event free() {
    std::swap(alive_[below(alive_.size())], alive_.back());
    freed_ = alive_.back();
    alive_.pop_back();
    return {.kind = Event::Kind::kFreed, .id = freed_};
  }

  Event change() {
    switch (below(4)) {
      case 0:
        return {.kind = Event::Kind::kResized, .id = some_alive(), .bytes = some_bytes()};
      case 1:
        return {.kind = Event::Kind::kClassifiedKeepingOwner, .category = some_category(), .id = some_alive()};
      default:
        return {
            .kind = Event::Kind::kClassified, .category = some_category(), .owner = some_owner(), .id = some_alive()};
    }
  }

  Event segment() {
    return {.kind = Event::Kind::kSegment,
            .device = DeviceId(below(devices_)),
            .delta = (static_cast<std::int64_t>(below(5)) - 2) * 2097152};
  }

  Event enter() {
    open_.push_back(some_owner());
    return {.kind = Event::Kind::kEntered, .state = static_cast<ModuleState>(below(8)), .owner = open_.back()};
  }

  Event leave() {
    if (open_.empty()) return enter();
    const std::size_t i = chance(3) ? below(open_.size()) : open_.size() - 1;
    const OwnerId module = open_[i];
    open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(i));
    return {.kind = Event::Kind::kLeft, .owner = module};
  }

  Event misuse() {
    switch (below(7)) {
      case 0:
        return {.kind = Event::Kind::kFreed, .id = freed_};
      case 1:
        return {.kind = Event::Kind::kFreed, .id = AllocationId{random_()}};
      case 2:
        return {.kind = Event::Kind::kResized, .id = freed_, .bytes = some_bytes()};
      case 3:
        return {.kind = Event::Kind::kClassified, .category = some_category(), .owner = some_owner(), .id = freed_};
      case 4:
        return {.kind = Event::Kind::kLeft, .owner = OwnerId(owners_ - 1)};
      case 5:
        if (alive_.empty()) return allocate();
        return {.kind = Event::Kind::kAllocated,
                .category = some_category(),
                .device = DeviceId(below(devices_)),
                .owner = some_owner(),
                .id = some_alive(),
                .bytes = some_bytes()};
      default:
        // Too large for the device, unless the device is empty. It is freed like any other.
        if (alive_.empty()) return allocate();
        return {.kind = Event::Kind::kResized, .id = some_alive(), .bytes = ~Bytes{0} - below(3)};
    }
  }

  std::mt19937_64 random_;
  std::deque<std::string> names_;
  std::uint64_t devices_ = 0;
  std::uint64_t categories_ = std::size(categories::kNames);
  std::uint64_t phases_ = std::size(phases::kNames);
  std::uint64_t owners_ = 1;
  std::vector<AllocationId> alive_;
  std::vector<OwnerId> open_;
  AllocationId freed_{~std::uint64_t{0}};
  std::uint64_t last_id_ = 1000;
  bool ramping_ = true;
};

}  // namespace plimsoll::ledger
