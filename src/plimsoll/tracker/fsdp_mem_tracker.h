#pragma once

#include <cstdint>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "plimsoll/fsdp/module_ref.h"
#include "plimsoll/tracker/explain/explanation.h"
#include "plimsoll/tracker/explain/rank_peak.h"
#include "plimsoll/tracker/fsdp/fsdp_module_stats.h"
#include "plimsoll/tracker/mem_tracker.h"

namespace plimsoll {

class FSDPRuntime;
class FSDPWatch;

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
/// The runtime says by itself what it takes memory for (fsdp/memory_use.h), so that memory has its category from its
/// first instant on, and belongs to the FSDP module whose parameters it holds, whichever runs at the time:
///
///   Sharded Param        the shards; with CPU offload they are the host's
///   Unsharded Param      the whole parameters that an all-gather is copied out to
///   Sharded Grad         gradients of the shards
///   Unsharded Grad       gradients of whole parameters, until they are reduced
///   Accumulated Grad     those that a backward without gradient sync leaves for a later one
///   All Gather           what is gathered into
///   All Gather Input     shards that had to be cast or brought to the device first
///   All Gather Copy-Out  where gathered shards are laid out anew (sharded along another dimension than the first)
///   Post-Forward Shard   what reshard_after_forward = N keeps between forward and backward
///   Reduce Scatter       what is reduced from
///   Reduce Scatter Output, All Reduce    what is reduced to, and among replicas, before it is a gradient
///   Partial Grad         what waits for the all-reduce of a later backward
///   Buffer, Activation, Temp, Workspace, Other    as MemTracker's
///   OptState             state of optimizers
///   Inputs               by track_inputs
///   Parameter, Gradient  of parameters that fully_shard was told to ignore
///
/// All of MemTracker can be asked of it as well: snapshots, steps, phases, every module's states.
class FSDPMemTracker : public MemTracker {
 public:
  /// Throws where fully_shard was not applied to `root`. The tracker follows all FSDP modules below it, as they are at
  /// enter().
  explicit FSDPMemTracker(fsdp::ModuleRef root, const MemTrackerOptions& options = {});
  /// Registers what state the optimizer has already. That of a later step is seen in any case.
  template <class Optimizer>
    requires std::is_base_of_v<nn::StepObservable, Optimizer> || std::is_base_of_v<torch::optim::Optimizer, Optimizer>
  FSDPMemTracker(fsdp::ModuleRef root, Optimizer& optimizer, const MemTrackerOptions& options = {})
      : FSDPMemTracker(root, options) {
    track_external(optimizer);
  }
  /// For another runtime than plimsoll::fsdp. Without roots, until add_root.
  explicit FSDPMemTracker(std::unique_ptr<FSDPRuntime> runtime, const MemTrackerOptions& options = {});
  ~FSDPMemTracker() override;

  /// Follows another model besides.
  void add_root(fsdp::ModuleRef root);

  /// The tensors in there are Inputs: in containers, pointers and optionals at any depth.
  template <class... Objects>
  void track_inputs(Objects&&... objects) {
    InputVisitor visitor{*this};
    (detail::visit_external(visitor, objects), ...);
  }

  std::vector<FSDPModuleStats> fsdp_module_stats();
  /// Throws for a name that no FSDP module has that ran.
  FSDPModuleStats fsdp_module_stats(std::string_view fqn);
  /// Forgets the modules' snapshots, those of MemTracker included.
  void reset_mod_stats();

  /// Of FSDP modules. MemTracker's own is there too, for all modules.
  void display_modulewise_snapshots(const ModulewiseDisplay& display = {}, std::ostream& out = std::cout);

  /// Why the device that the root computes on stood as high as it did: at the highest instant since the outermost
  /// enter().
  Explanation explain();
  using MemTracker::explain;
  /// The same for the highest instant of the optimizer's step in which its state first appeared; nothing before that,
  /// or where it was there from the beginning.
  std::optional<Explanation> explain_first_state();

  /// The rank whose device stood highest, over the ranks of the default process group, which all call this.
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

}  // namespace plimsoll
