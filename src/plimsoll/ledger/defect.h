#pragma once

#include <cstdint>
#include <string>

#include "plimsoll/base/bytes.h"
#include "plimsoll/ledger/ids.h"
#include "plimsoll/ledger/names.h"

namespace plimsoll::ledger {

/// A misuse, in a form that is stored without an allocation, because hooks and deleters cannot throw.
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
  std::uint64_t subject = 0;  ///< The number of the subject: an allocation, a module, a device, a change.
  Bytes bytes = 0;
  DeviceId device{};
  bool freed_before = false;  ///< Whether the allocation was alive before.
  Sequence at{};
};

/// A sentence that names the event and its allocation, module or device.
std::string describe(const Defect& defect, const Names& names);

}  // namespace plimsoll::ledger
