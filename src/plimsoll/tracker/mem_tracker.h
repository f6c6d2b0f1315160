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

namespace plimsoll::inline tracker {

enum class SnapshotKind { kCurrent, kPeak };

struct MemTrackerOptions {
  /// The number of finished steps that keep their peaks.
  std::size_t steps = 256;
  /// Records every event, if not null. Outlives the tracker.
  ledger::Log* log = nullptr;
};

/// An allocation that was live at a peak.
struct LiveTensor {
  std::int64_t bytes = 0;
  std::string category;
  /// The path of its module, or the class of its optimizer; "" for none.
  std::string owner;
  /// Of the tensor that the memory was made for; nullopt for temporaries and workspaces.
  std::optional<std::vector<std::int64_t>> sizes;
  std::optional<at::ScalarType> dtype;
};

/// The peaks of one step, each device's at its own instant.
struct StepPeak {
  std::int64_t step = 0;
  Snapshot peak;
};

/// The three books of a device: now, and the maximum since the outermost enter().
struct DeviceBooks {
  struct Counter {
    std::int64_t current = 0;
    std::int64_t peak = 0;
  };
  Counter active;    ///< In tensors, and in blocks that a stream may still use.
  Counter reserved;  ///< Held by the caching allocator, active or not.
  /// The rest of the device book: the context, memory of NCCL and other libraries, other processes. 0 on the CPU.
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
/// It counts memory as the allocators do, on every thread, temporaries inside operators included: the total of a device
/// is the allocator's active bytes. On CUDA it sees all memory; on the CPU, memory that was made while the process had
/// a tracker, and memory that was registered. It counts from construction to destruction. *Between enter() and the end
/// of the scope* the hooks of modules (nn::Hooked), parameters and optimizers (nn::Optimizer, nn::HookedOptimizer) also
/// give the memory its category:
///
///   Parameter, Buffer   of modules that were registered or have run
///   Gradient            of such parameters
///   Activation          results of forward passes, recomputation by nn::checkpoint included
///   Temp                memory that backward and the optimizer make and do not keep: gradients of activations, …
///   Optstate            state of optimizers
///   Workspace           the workspaces of cuBLAS and cuBLASLt
///   Other               the rest: made outside of scopes or while preparing, or registered as bare tensors
///   names of the user's own, by categorise()
///
/// A step begins with the first forward after an optimizer's step. The number of steps is not limited; of a module the
/// tracker keeps the latest step. Several trackers may be active together. Use a tracker from one thread; the training
/// may run on any.
class MemTracker {
 protected:
  class Impl;

 public:
  explicit MemTracker(const MemTrackerOptions& options = {});
  virtual ~MemTracker();
  MemTracker(const MemTracker&) = delete;
  MemTracker& operator=(const MemTracker&) = delete;

  /// Registers objects that exist already: modules (parameters, buffers, gradients), optimizers (their state), tensors
  /// (Other), and containers, pointers and optionals of these. Throws for a module without hooks (the message says how
  /// to declare it), and for a c10::IValue of another type.
  template <class... Objects>
  void track_external(Objects&&... objects) {
    (detail::visit_external(*this, objects), ...);
  }

  /// Tracks until the end of the scope or of the tracker. The run's peak counts from the outermost enter(). Scopes
  /// nest. enter() throws if another thread has a scope of this tracker.
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

  /// For a scope that begins before training. While preparing, memory from outside of modules, backward passes and
  /// steps is Other (data, averages of weights), not Activation.
  void set_preparing(bool preparing);
  /// As ModuleTracker's.
  void name_apart();

  /// The bytes by category, now or at the peak since the outermost enter() (each device at its own instant). Throws if
  /// an event was missed: a bug of ours, or memory that no allocator reported.
  Snapshot snapshot(SnapshotKind kind = SnapshotKind::kCurrent);
  /// The live allocations at that peak, largest first.
  std::vector<LiveTensor> alive_at_peak(std::string_view device);
  /// The causes of that peak; `names` renames owners. Throws for a device without allocations.
  Explanation explain(std::string_view device, const OwnerNames& names = as_in_ledger);
  /// The peaks of the finished steps and of the current one.
  std::vector<StepPeak> step_peaks();
  /// Of the latest step, by phase: "forward", "backward", "optimizer", "other".
  std::map<std::string, Snapshot> phase_peaks();
  /// The reserved bytes of the device.
  Bytes reserved(std::string_view device);
  /// The three books of the device. All zero for a device without allocations.
  DeviceBooks device_books(std::string_view device);

  /// The root modules that ran, by name.
  std::vector<std::pair<std::string, std::weak_ptr<torch::nn::Module>>> roots();
  std::vector<ModuleStats> module_stats();
  /// Throws if no module with this name ran.
  ModuleStats module_stats(std::string_view fqn);
  /// Forgets the modules' snapshots.
  void reset_mod_stats();

  void display_snapshot(SnapshotKind kind = SnapshotKind::kCurrent, ByteUnit unit = ByteUnit::kB,
                        Layout layout = Layout::kPlain, std::ostream& out = std::cout);
  void display_modulewise_snapshots(const ModulewiseDisplay& display = {}, std::ostream& out = std::cout);

  /// Gives the tensor's memory a category of the user's, for the life of the memory. Throws for a tensor without
  /// memory, and for the names "" and "Total".
  void categorise(const at::Tensor& tensor, std::string_view category);

  /// As ModuleTracker's.
  std::set<std::string> parents() const;
  bool is_bw() const { return ModuleTracker::is_bw(); }
  /// Calls these after the tracker's own work, within scopes. Throws if there are user hooks already.
  void register_user_hooks(ModuleHooks hooks);
  void clear_user_hooks();

  /// The memory of the tracker itself. It does not grow with steps, beyond the peaks that MemTrackerOptions asks for.
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

}  // namespace plimsoll::inline tracker
