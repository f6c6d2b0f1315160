#pragma once

#include <cstdint>
#include <string>

#include "plimsoll/base/bytes.h"
#include "plimsoll/ledger/ids.h"
#include "plimsoll/ledger/names.h"

namespace plimsoll::ledger {

/// A misuse, as it can be noted where nothing may be thrown and nothing should be allocated.
struct Defect {
  enum class Kind : std::uint8_t {
    kNone,
    kFreedNotAlive,
    kResizedNotAlive,
    kClassifiedNotAlive,
    kAllocatedTwice,
    kLeftNotEntered,
    kTooManyOpenModules,
    kTotalOverflows,
    kReservedOutOfRange,
    kUnknownDevice,
    kUnknownCategory,
    kUnknownOwner,
    kUnknownPhase,
  };

  Kind kind = Kind::kNone;
  std::uint64_t subject = 0;  ///< The number of what the kind is about: an allocation, a module, a device, a change.
  Bytes bytes = 0;
  DeviceId device{};
  bool freed_before = false;  ///< Whether the allocation is known to have been alive once.
  Sequence at{};
};

/// The sentence that names the id, the module or the device, and the event.
std::string describe(const Defect& defect, const Names& names);

}  // namespace plimsoll::ledger
