#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "plimsoll/capture/reporting.h"
#include "plimsoll/ledger/ledger.h"
#include "plimsoll/nn/hooks/hook_list.h"
#include "plimsoll/tracker/explain/explanation.h"
#include "plimsoll/tracker/mem_tracker.h"
#include "plimsoll/tracker/module_records.h"
#include "plimsoll/tracker/module_tracker.h"
#include "plimsoll/tracker/tracked_ledger.h"
#include "plimsoll/tracker/watched_tensors.h"

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

/// The parts of a MemTracker: the tracked ledger, the modules' records, and the hooks that follow the training.
class MemTracker::Impl {
 public:
  explicit Impl(const MemTrackerOptions& options);
  ~Impl();

  void enter();
  void leave() noexcept;

  // --- Called by the hooks.
  void before_forward(torch::nn::Module& module, nn::Tensors& arguments);
  void after_forward(torch::nn::Module& module, nn::Tensors& arguments, nn::Tensors& results);
  void before_backward(torch::nn::Module* module, const std::string& fqn, const Gradients& gradients);
  void after_backward(torch::nn::Module* module, const std::string& fqn, const Gradients& gradients);
  void after_step(nn::StepObservable& optimizer);

  // --- Peaks of all devices. Outside of scopes: as at the end of the last scope.
  /// REQUIRES: within tracked.with_ledger.
  std::vector<ledger::Peak> run_peaks(const ledger::Ledger& ledger) const;
  Bytes peak_reserved(ledger::DeviceId device, const ledger::Ledger& ledger) const;

 private:
  const std::shared_ptr<TrackedLedger> shared_ledger_;  ///< Hooks on tensors share it and may outlive the tracker.

 public:
  TrackedLedger& tracked = *shared_ledger_;
  const std::shared_ptr<WatchedTensors> tensors;
  ModuleTracker modules;
  ModuleRecords records;  ///< Guarded by the tracked ledger's lock.
  ModuleHooks user_hooks;
  bool has_user_hooks = false;
  TrackerExtension* extension = nullptr;  ///< Not owned.

 private:
  void add_hooks();
  void remove_hooks() noexcept;
  std::int64_t described_bytes(const nn::Tensors& tensors);
  std::pair<std::int64_t, std::int64_t> held_bytes(const torch::nn::Module& module);
  void begin_pass(ledger::Ledger& ledger);
  ModuleRecords::Record& record_of(torch::nn::Module& module, const std::string& fqn, ledger::Ledger& ledger);

  mutable std::mutex entering_;  ///< Guards the next two.
  int depth_ = 0;
  std::thread::id thread_;
  std::optional<capture::ReportingScope> reporting_;
  std::vector<nn::HookHandle> handles_;
  std::atomic<bool> step_due_{true};  ///< The next pass begins a step.
  // Guarded by the tracked ledger's lock.
  bool entered_ = false;
  std::vector<ledger::RetainedPeak> last_peaks_;  ///< Of the last scope, while no scope is open.
  std::vector<Bytes> last_peaks_reserved_;        ///< The same, by device.
};

}  // namespace plimsoll::inline tracker
