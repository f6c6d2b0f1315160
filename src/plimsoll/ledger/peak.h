#pragma once

#include <memory>
#include <vector>

#include "plimsoll/base/bytes.h"
#include "plimsoll/ledger/balance.h"
#include "plimsoll/ledger/ids.h"

namespace plimsoll::ledger {

/// One instant of one device; usually the first instant of the highest total in a window (run, step, phase, module).
struct Peak {
  DeviceId device{};
  /// The event that led to this state: it raised the total or opened the window.
  Sequence at{};
  Balance balance;
  Bytes reserved = 0;
  Step step = kNoStep;
  PhaseId phase = phases::kOther;

  friend bool operator==(const Peak&, const Peak&) = default;
};

/// A peak whose contents the ledger keeps while a copy of this pointer lives. The pointer may outlive the ledger, and
/// may be copied and dropped on any thread.
using RetainedPeak = std::shared_ptr<const Peak>;

/// An open module.
struct OpenModule {
  OwnerId module{};
  ModuleState state{};
  Sequence entered{};

  friend bool operator==(const OpenModule&, const OpenModule&) = default;
};

/// The peaks of a module between entry and exit, by device.
struct ModulePeaks {
  OpenModule entry;
  std::vector<Peak> peaks;
};

}  // namespace plimsoll::ledger
