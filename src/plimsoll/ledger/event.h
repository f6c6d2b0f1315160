#pragma once

#include <cstdint>
#include <string_view>

#include "plimsoll/base/bytes.h"
#include "plimsoll/ledger/ids.h"
#include "plimsoll/ledger/names.h"

namespace plimsoll::ledger {

class Ledger;
struct ModulePeaks;

/// One call to a ledger, as a value.
struct Event {
  enum class Kind : std::uint8_t {
    kNamed,  ///< A name gets its id. This is not a ledger event: it has no number.
    kAllocated,
    kFreed,
    kResized,
    kClassified,
    kClassifiedKeepingOwner,
    kSegment,
    kEntered,
    kLeft,
    kStepBegun,
    kPhase,
    kRunPeakReset,
  };
  static constexpr std::uint8_t kKinds = 12;

  Kind kind{};
  CategoryId category{};
  PhaseId phase{};
  ModuleState state{};
  NameKind name_kind{};
  DeviceId device{};
  OwnerId owner{};  ///< The module of kEntered and kLeft.
  AllocationId id{};
  Bytes bytes = 0;
  StreamId stream{};
  std::int64_t delta = 0;
  std::string_view name{};

  friend bool operator==(const Event&, const Event&) = default;
};

/// Makes the call. Returns the result of Ledger::left, and nullptr for all other kinds.
const ModulePeaks* apply(const Event& event, Ledger& ledger);

}  // namespace plimsoll::ledger
