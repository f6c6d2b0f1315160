#pragma once

#include <torch/nn/module.h>

#include <cstddef>

#include "plimsoll/ledger/ledger.h"
#include "plimsoll/tracker/explain/explanation.h"

namespace plimsoll::inline tracker {

/// The work of a tracker for more than modules and optimizers, beside the MemTracker's own.
class TrackerExtension {
 public:
  /// The outermost scope begins: models may have changed since the last one.
  virtual void look_again() = 0;
  /// A step begins.
  virtual void before_step() = 0;
  /// A forward that a checkpoint ran again is over, at its end or early, after all that was needed.
  virtual void after_recomputed_forward(torch::nn::Module& module) = 0;
  /// An optimizer's step is over, and its state is named.
  virtual void after_step() = 0;
  /// Explains a peak by the stages of modules, too. REQUIRES: the peak's contents are kept, and its step is that of the
  /// run's peak or of the first state's. Called with the tracked ledger's lock held.
  virtual Explanation explain(const ledger::Peak& peak, const ledger::Ledger& ledger,
                              const OwnerNames& names) const = 0;
  /// The number of entries. Called with the tracked ledger's lock held.
  virtual std::size_t entries() const = 0;

 protected:
  ~TrackerExtension() = default;
};

}  // namespace plimsoll::inline tracker
