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
#include "plimsoll/nn/hooks/hook_handle.h"
#include "plimsoll/tracker/mem_tracker.h"
#include "plimsoll/tracker/module_records.h"
#include "plimsoll/tracker/module_tracker.h"
#include "plimsoll/tracker/tracked_ledger.h"
#include "plimsoll/tracker/tracker_extension.h"
#include "plimsoll/tracker/watched_tensors.h"

namespace plimsoll::inline tracker {

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
  const std::shared_ptr<TrackedLedger>
      shared_ledger_;  ///< Shared with hooks on tensors, which may outlive the tracker.

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
  bool entered_ = false;              ///< Guarded by the tracked ledger's lock.
  std::vector<ledger::RetainedPeak>
      last_peaks_;                          ///< Of the last scope, while no scope is open. Guarded by the same lock.
  std::vector<Bytes> last_peaks_reserved_;  ///< The same, by device.
};

}  // namespace plimsoll::inline tracker
