#pragma once

#include <memory>
#include <vector>

#include "plimsoll/base/bytes.h"
#include "plimsoll/ledger/balance.h"
#include "plimsoll/ledger/ids.h"

namespace plimsoll::ledger {

/// One instant of one device, and most often a highest one: the first instant at which the total was as high as it ever
/// was in the window (run, step, phase, a module's time) that was asked for.
struct Peak {
  DeviceId device{};
  /// The event after which the device stood so: the one that raised it, or that opened the window.
  Sequence at{};
  Balance balance;
  Bytes reserved = 0;
  Step step = kNoStep;
  PhaseId phase = phases::kOther;

  friend bool operator==(const Peak&, const Peak&) = default;
};

/// A peak whose contents the ledger keeps for as long as one copy of this lives. It may outlive the ledger, and may be
/// copied and dropped on any thread.
using RetainedPeak = std::shared_ptr<const Peak>;

/// A module that is open.
struct OpenModule {
  OwnerId module{};
  ModuleState state{};
  Sequence entered{};

  friend bool operator==(const OpenModule&, const OpenModule&) = default;
};

/// The peaks of a module from entering to leaving it, by device.
struct ModulePeaks {
  OpenModule entry;
  std::vector<Peak> peaks;
};

}  // namespace plimsoll::ledger
