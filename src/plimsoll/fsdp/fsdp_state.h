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

/// What the states below one root share. Counterpart of FSDPStateContext.
struct FSDPStateContext {
  /// All states of the root's tree, parents before children.
  std::vector<std::weak_ptr<FSDPState>> all_states;
  /// The state whose forward is the outermost of this iteration: the root's, or that of a part which runs alone.
  const FSDPState* iter_forward_root = nullptr;
  bool post_backward_final_callback_queued = false;
  bool is_last_backward = true;
  Event post_optim_event;  ///< The user's; the next root forward waits for it, once.
};

/// What fully_shard puts beside a module (or a group of them): the hooks around forward and backward that gather and
/// free the parameters of its groups. Counterpart of FSDPState (torch/distributed/fsdp/_fully_shard/_fsdp_state.py).
class FSDPState : public std::enable_shared_from_this<FSDPState> {
 public:
  FSDPState(std::vector<torch::nn::Module*> modules, at::Device device, MixedPrecisionPolicy mp_policy,
            bool auto_reshard_after_forward);

  /// The state of a module, null where fully_shard was not applied to it.
  static std::shared_ptr<FSDPState> of(const torch::nn::Module& module);

  /// Puts the state beside its modules, and the hooks around their forwards.
  void attach();

  void pre_forward(nn::Tensors& arguments);
  void post_forward(nn::Tensors& results);
  void reset_iter_state();

  const std::vector<torch::nn::Module*>& modules() const { return modules_; }
  /// Those of them that were not destroyed.
  std::vector<torch::nn::Module*> living_modules() const;
  at::Device device() const { return device_; }
  bool is_root() const { return is_root_ == true; }
  TrainingState training_state() const { return training_state_; }
  /// "model.layers.3", or the classes of its modules before the first forward.
  std::string name() const;

  std::vector<std::shared_ptr<FSDPParamGroup>> fsdp_param_groups;
  std::shared_ptr<FSDPStateContext> state_ctx = std::make_shared<FSDPStateContext>();
  std::shared_ptr<FSDPCommContext> comm_ctx = std::make_shared<FSDPCommContext>();
  std::vector<std::weak_ptr<FSDPState>> states_to_forward_prefetch;
  std::vector<std::weak_ptr<FSDPState>> states_to_backward_prefetch;
  bool auto_reshard_after_forward;  ///< Nobody said whether to: the root does not.

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
  std::vector<std::weak_ptr<torch::nn::Module>> owners_of_modules_;  // Of each; empty where there is none.
  at::Device device_;
  MixedPrecisionPolicy mp_policy_;
  std::optional<bool> is_root_;  // Known from the first forward on.
  TrainingState training_state_ = TrainingState::kIdle;
  std::set<const torch::nn::Module*> modules_to_run_forward_;  // Of a group, those that this pass has yet to run.
};

}  // namespace plimsoll::fsdp
