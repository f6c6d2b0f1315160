#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "plimsoll/fsdp/group/comm_context.h"
#include "plimsoll/fsdp/group/fsdp_param_group.h"
#include "plimsoll/fsdp/policies.h"
#include "plimsoll/nn/hooks/hooks.h"

namespace plimsoll::fsdp {

class FSDPState;

/// State that all FSDPStates below one root share. Counterpart of FSDPStateContext.
struct FSDPStateContext {
  /// All states of the root's tree, parents before children.
  std::vector<std::weak_ptr<FSDPState>> all_states;
  /// The state with the outermost forward of this iteration: the root, or a part of the model that runs alone.
  const FSDPState* iter_forward_root = nullptr;
  bool post_backward_final_callback_queued = false;
  bool is_last_backward = true;
  Event post_optim_event;  ///< The user's; the next root forward waits for it, once.
};

/// The FSDP state of a module or a group of modules: the hooks around forward and backward that gather and free the
/// parameters of its groups. Counterpart of FSDPState (torch/distributed/fsdp/_fully_shard/_fsdp_state.py).
class FSDPState : public std::enable_shared_from_this<FSDPState> {
 public:
  FSDPState(std::vector<torch::nn::Module*> modules, at::Device device, MixedPrecisionPolicy mp_policy,
            bool auto_reshard_after_forward);

  /// The state of a module; null if fully_shard was not applied to it.
  static std::shared_ptr<FSDPState> of(const torch::nn::Module& module);

  /// Attaches the state to its modules, and registers the hooks around their forwards.
  void attach();

  void pre_forward(nn::Tensors& arguments);
  void post_forward(nn::Tensors& results);
  void reset_iter_state();

  const std::vector<torch::nn::Module*>& modules() const { return modules_; }
  /// The modules that are not destroyed.
  std::vector<torch::nn::Module*> living_modules() const;
  at::Device device() const { return device_; }
  bool is_root() const { return is_root_ == true; }
  TrainingState training_state() const { return training_state_; }
  /// "model.layers.3"; before the first forward, the classes of its modules.
  std::string name() const;

  std::vector<std::shared_ptr<FSDPParamGroup>> fsdp_param_groups;
  std::shared_ptr<FSDPStateContext> state_ctx = std::make_shared<FSDPStateContext>();
  std::shared_ptr<FSDPCommContext> comm_ctx = std::make_shared<FSDPCommContext>();
  std::vector<std::weak_ptr<FSDPState>> states_to_forward_prefetch;
  std::vector<std::weak_ptr<FSDPState>> states_to_backward_prefetch;
  bool auto_reshard_after_forward;  ///< The user did not choose: all but the root reshard.

 private:
  void gather_for_forward(nn::Tensors& arguments);
  void free_after_forward(nn::Tensors& results);
  void register_hooks(torch::nn::Module& module);
  void check_is_own(const torch::nn::Module& module) const;
  void root_pre_forward(nn::Tensors& arguments);
  void inputs_to_device(nn::Tensors& arguments) const;
  void lazy_init();
  void init_fqns();
  void init_shared_state();
  void cast_forward_inputs(nn::Tensors& arguments) const;
  void cast_output_dtype(nn::Tensors& results) const;
  void force_complete_incomplete_states(nn::Tensors& results);
  void register_pre_backward_hook(nn::Tensors& results);
  void register_root_post_backward_final_callback();
  void pre_backward();
  void root_post_backward_final_callback();
  std::vector<std::shared_ptr<FSDPState>> all_states() const;

  std::vector<torch::nn::Module*> modules_;
  std::vector<std::weak_ptr<torch::nn::Module>>
      owners_of_modules_;  // One for each module; empty if it has no shared owner.
  at::Device device_;
  MixedPrecisionPolicy mp_policy_;
  std::optional<bool> is_root_;  // Known after the first forward begins.
  TrainingState training_state_ = TrainingState::kIdle;
  std::set<const torch::nn::Module*>
      modules_to_run_forward_;  // Of a group, the modules that have not run in this pass.
};

}  // namespace plimsoll::fsdp
