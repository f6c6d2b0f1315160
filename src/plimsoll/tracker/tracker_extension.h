#pragma once

#include <torch/nn/module.h>

#include <cstddef>

#include "plimsoll/ledger/ledger.h"
#include "plimsoll/tracker/explain/explanation.h"

namespace plimsoll {

/// What a tracker for more than modules and optimizers does besides, while the MemTracker does its own.
class TrackerExtension {
 public:
  /// The outermost scope is entered: things may have changed since the last one.
  virtual void look_again() = 0;
  /// A step begins.
  virtual void before_step() = 0;
  /// A module's forward that a checkpoint ran again is over, to its end or broken off where enough was recomputed.
  virtual void after_recomputed_forward(torch::nn::Module& module) = 0;
  /// An optimizer has stepped, and its state is named.
  virtual void after_step() = 0;
  /// Explains a peak by the stages of modules, too. REQUIRES: the peak's contents are kept, and its step is that of the
  /// run's peak or of the first state's. Called with the tracked ledger's lock held.
  virtual Explanation explain(const ledger::Peak& peak, const ledger::Ledger& ledger,
                              const OwnerNames& names) const = 0;
  /// How many things it keeps. Called with the tracked ledger's lock held.
  virtual std::size_t entries() const = 0;

 protected:
  ~TrackerExtension() = default;
};

}  // namespace plimsoll
