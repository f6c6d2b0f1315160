#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <cstddef>
#include <cstdint>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plimsoll/base/bytes.h"
#include "plimsoll/ledger/log.h"
#include "plimsoll/nn/optim/step_observable.h"
#include "plimsoll/tracker/display.h"
#include "plimsoll/tracker/explain/explanation.h"
#include "plimsoll/tracker/external.h"
#include "plimsoll/tracker/module_stats.h"
#include "plimsoll/tracker/module_tracker.h"
#include "plimsoll/tracker/snapshot.h"

namespace plimsoll {

enum class SnapshotKind { kCurrent, kPeak };

struct MemTrackerOptions {
  /// How many finished steps keep their peaks.
  std::size_t steps = 256;
  /// Where every event is recorded, or nowhere. Outlives the tracker.
  ledger::Log* log = nullptr;
};

/// Something that was alive at a peak.
struct LiveTensor {
  std::int64_t bytes = 0;
  std::string category;
  /// The path of the module, or the class of the optimizer, that it belongs to or was made in; "" for none.
  std::string owner;
  /// Of the tensor that the memory was made for. Nothing for what no tensor was seen of: temporaries, workspaces.
  std::optional<std::vector<std::int64_t>> sizes;
  std::optional<at::ScalarType> dtype;
};

/// The peaks of one step, each device's at its own instant.
struct StepPeak {
  std::int64_t step = 0;
  Snapshot peak;
};

/// What is taken of a device, as three counts see it: now, and at the most since the outermost enter().
struct DeviceBooks {
  struct Counter {
    std::int64_t current = 0;
    std::int64_t peak = 0;
  };
  Counter active;    ///< In tensors, and in blocks that a stream may still use.
  Counter reserved;  ///< Held by the caching allocator, active or not.
  /// Beyond that: the context, NCCL's and other libraries' own, other processes'. What is taken of a device in all is
  /// reserved and this. 0 on the CPU.
  std::int64_t outside = 0;
};

/// Every tensor's memory, categorised and attributed to modules; the counterpart of torch's MemTracker.
///
///     plimsoll::MemTracker tracker;
///     tracker.track_external(model, optimizer, batch);
///     for (…) {
///       auto scope = tracker.enter();
///       model->forward(batch).sum().backward();
///       optimizer.step();
///     }
///     tracker.display_snapshot(SnapshotKind::kPeak, ByteUnit::kMiB, Layout::kTable);
///
/// It sees memory as its allocators do, on every thread, temporaries inside operators included: the total of a device
/// is what its allocator counts as active. On CUDA that is all there is; on the CPU all that was made while the process
/// had a tracker, and what was registered here. From construction to destruction nothing escapes it; *between enter()
/// and the end of the scope* it also knows what is going on, by the hooks of modules (nn::Hooked), parameters and
/// optimizers (nn::Optimizer, nn::HookedOptimizer), and names memory accordingly:
///
///   Parameter, Buffer   of modules that were registered or have run
///   Gradient            of such parameters
///   Activation          what forward passes make, recomputation by nn::checkpoint included
///   Temp                what backward passes and optimizer steps make and do not keep: gradients of activations, …
///   Optstate            state of optimizers
///   Workspace           where cuBLAS and cuBLASLt work
///   Other               the rest: made outside of scopes or while preparing, or registered as bare tensors
///   names of the user's own, by categorise()
///
/// A step begins with the first forward after an optimizer's step. Any number of them may pass; what is kept of a
/// module is its latest step. Several trackers may be at work at once. Use one tracker from one thread; what it watches
/// may be on any.
class MemTracker {
 protected:
  class Impl;

 public:
  explicit MemTracker(const MemTrackerOptions& options = {});
  virtual ~MemTracker();
  MemTracker(const MemTracker&) = delete;
  MemTracker& operator=(const MemTracker&) = delete;

  /// Registers what was made before: modules (parameters, buffers, gradients), optimizers (their state), tensors
  /// (Other), and containers, pointers and optionals of these. Throws for a module without hooks, saying which and how
  /// to declare it, and for a c10::IValue that holds none of these.
  template <class... Objects>
  void track_external(Objects&&... objects) {
    (detail::visit_external(*this, objects), ...);
  }

  /// The time of tracking, until its end or the tracker's. The run's peak counts from the outermost enter() on. Scopes
  /// nest. enter() throws where another thread has a scope of this tracker.
  class [[nodiscard]] Scope {
   public:
    Scope(Scope&&) noexcept = default;
    Scope& operator=(Scope&&) = delete;
    ~Scope();

   private:
    friend class MemTracker;
    explicit Scope(std::weak_ptr<Impl> tracker) : tracker_(std::move(tracker)) {}
    std::weak_ptr<Impl> tracker_;
  };
  Scope enter();

  /// For who enters a scope before anything is made: until training begins, what is made outside of modules, backward
  /// passes and steps is Other, and no activation (data, averages of weights).
  void set_preparing(bool preparing);
  /// As ModuleTracker's.
  void name_apart();

  /// Where the memory stands, or stood at its highest since the outermost enter() (each device at its own instant).
  /// Throws if the books are broken, which is a bug of ours or memory that went past every allocator.
  Snapshot snapshot(SnapshotKind kind = SnapshotKind::kCurrent);
  /// What was alive at that peak, largest first.
  std::vector<LiveTensor> alive_at_peak(std::string_view device);
  /// Why the device stood as high as it did then, cause by cause. Throws for a device that nothing was seen of.
  Explanation explain(std::string_view device, const OwnerNames& names = as_in_ledger);
  /// The peaks of the steps that are over and of the current one.
  std::vector<StepPeak> step_peaks();
  /// Of the latest step, by phase: "forward", "backward", "optimizer", "other".
  std::map<std::string, Snapshot> phase_peaks();
  /// What the allocator holds of the device.
  Bytes reserved(std::string_view device);
  /// The device's books side by side. All zero for a device that nothing was seen of.
  DeviceBooks device_books(std::string_view device);

  /// The modules that ran and are within no other, by name.
  std::vector<std::pair<std::string, std::weak_ptr<torch::nn::Module>>> roots();
  std::vector<ModuleStats> module_stats();
  /// Throws for a name that no module has that ran.
  ModuleStats module_stats(std::string_view fqn);
  /// Forgets the modules' snapshots.
  void reset_mod_stats();

  void display_snapshot(SnapshotKind kind = SnapshotKind::kCurrent, ByteUnit unit = ByteUnit::kB,
                        Layout layout = Layout::kPlain, std::ostream& out = std::cout);
  void display_modulewise_snapshots(const ModulewiseDisplay& display = {}, std::ostream& out = std::cout);

  /// The tensor's memory has a category of the user's own from now on, whatever becomes of the tensor. Throws for a
  /// tensor without memory, and for the names "" and "Total".
  void categorise(const at::Tensor& tensor, std::string_view category);

  /// As ModuleTracker's.
  std::set<std::string> parents() const;
  bool is_bw() const { return ModuleTracker::is_bw(); }
  /// Called after the tracker's own work, within scopes. Throws where there are user hooks already.
  void register_user_hooks(ModuleHooks hooks);
  void clear_user_hooks();

  /// What the tracker itself keeps. Neither grows with steps, beyond the peaks of those that MemTrackerOptions asks
  /// for.
  struct Footprint {
    std::size_t ledger_bytes = 0;
    std::size_t entries = 0;  ///< Names and descriptions of memory, watched tensors, snapshots of modules.
  };
  Footprint footprint();

  // --- What track_external finds: one thing at a time.
  void track_module(torch::nn::Module& module);
  void track_optimizer(nn::StepObservable& optimizer);
  void track_stock_optimizer(torch::optim::Optimizer& optimizer);
  void track_tensor(const at::Tensor& tensor);
  void track_value(const c10::IValue& value);

 protected:
  std::shared_ptr<Impl> impl_;
};

}  // namespace plimsoll
