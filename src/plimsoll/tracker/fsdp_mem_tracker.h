#pragma once

#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "plimsoll/fsdp/module_ref.h"
#include "plimsoll/tracker/explain/explanation.h"
#include "plimsoll/tracker/mem_tracker.h"
#include "plimsoll/tracker/snapshot.h"

namespace plimsoll::inline tracker {

class FSDPRuntime;
class FSDPWatch;

/// The peak of one rank.
struct RankPeak {
  int rank = 0;
  Snapshot peak;
};

/// MemTracker for models under fully_shard: where FSDP2's memory goes, at each of its stages. The counterpart of
/// torch's FSDPMemTracker.
///
///     plimsoll::FSDPMemTracker tracker(model, optimizer);
///     tracker.track_inputs(batch);
///     for (…) {
///       auto scope = tracker.enter();
///       model->forward(batch).sum().backward();
///       optimizer.step();
///       optimizer.zero_grad();
///     }
///     tracker.display_modulewise_snapshots({.depth = 3, .unit = ByteUnit::kMiB, .layout = Layout::kTable});
///     std::cout << tracker.explain();
///
/// The runtime reports the use of each allocation (fsdp/runtime_observer.h). So memory has its category from its first
/// instant, and belongs to the FSDP module of its parameters, even if another module runs:
///
///   Sharded Param        the shards; with CPU offload they are on the host
///   Unsharded Param      whole parameters, copied out of an all-gather
///   Sharded Grad         gradients of the shards
///   Unsharded Grad       gradients of whole parameters, until they are reduced
///   Accumulated Grad     whole gradients that a backward without gradient sync leaves for a later one
///   All Gather           the output buffer of an all-gather
///   All Gather Input     shards that had to be cast or brought to the device first
///   All Gather Copy-Out  gathered shards in their own layout (sharded along another dimension than the first)
///   Post-Forward Shard   shards that reshard_after_forward = N keeps between forward and backward
///   Reduce Scatter       the input of a reduce-scatter
///   Reduce Scatter Output, All Reduce    its output, and the buffer of replicas, before it is a gradient
///   Partial Grad         gradients that wait for the all-reduce of a later backward
///   Buffer, Activation, Temp, Workspace, Other    as MemTracker's
///   OptState             state of optimizers
///   Inputs               by track_inputs
///   Parameter, Gradient  of parameters that fully_shard was told to ignore
///
/// All functions of MemTracker work too: snapshots, steps, phases, the states of every module.
class FSDPMemTracker : public MemTracker {
 public:
  /// Throws if fully_shard was not applied to `root`. The tracker follows all FSDP modules below it, as they are at
  /// enter().
  explicit FSDPMemTracker(fsdp::ModuleRef root, const MemTrackerOptions& options = {});
  /// Registers the state that the optimizer has already. State of a later step needs no registration.
  template <class Optimizer>
    requires std::is_base_of_v<nn::StepObservable, Optimizer> || std::is_base_of_v<torch::optim::Optimizer, Optimizer>
  FSDPMemTracker(fsdp::ModuleRef root, Optimizer& optimizer, const MemTrackerOptions& options = {})
      : FSDPMemTracker(root, options) {
    track_external(optimizer);
  }
  /// For another runtime than plimsoll::fsdp. It has no root until add_root.
  explicit FSDPMemTracker(std::unique_ptr<FSDPRuntime> runtime, const MemTrackerOptions& options = {});
  ~FSDPMemTracker() override;

  /// Follows another model, too.
  void add_root(fsdp::ModuleRef root);

  /// Gives the tensors the category Inputs, in containers, pointers and optionals at any depth.
  template <class... Objects>
  void track_inputs(Objects&&... objects) {
    InputVisitor visitor{*this};
    (detail::visit_external(visitor, objects), ...);
  }

  std::vector<FSDPModuleStats> fsdp_module_stats();
  /// Throws if no FSDP module with this name ran.
  FSDPModuleStats fsdp_module_stats(std::string_view fqn);
  /// Forgets the modules' snapshots, MemTracker's too.
  void reset_mod_stats();

  /// Shows FSDP modules; MemTracker::display_modulewise_snapshots shows all modules.
  void display_modulewise_snapshots(const ModulewiseDisplay& display = {}, std::ostream& out = std::cout);

  /// The causes of the peak since the outermost enter(), on the device that the root computes on.
  Explanation explain();
  using MemTracker::explain;
  /// The same for the peak of the optimizer's step that created its state; nullopt before that step, or if the state
  /// was there from the start.
  std::optional<Explanation> explain_first_state();

  /// The rank of the default process group with the highest total on a device of the root's type; the first if several
  /// are equal. All ranks call this and get the same answer. The ranks exchange peaks through the group's store,
  /// without device memory. With the backend "fake", where one process is the whole world, the answer is its own peak.
  RankPeak worst_rank();

 private:
  struct InputVisitor {
    FSDPMemTracker& tracker;
    void track_module(torch::nn::Module& module);
    void track_optimizer(nn::StepObservable& optimizer);
    void track_stock_optimizer(torch::optim::Optimizer& optimizer);
    void track_tensor(const at::Tensor& tensor);
    void track_value(const c10::IValue& value);
  };

  std::unique_ptr<FSDPWatch> watch_;
};

}  // namespace plimsoll::inline tracker
