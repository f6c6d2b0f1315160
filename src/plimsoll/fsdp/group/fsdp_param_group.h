#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plimsoll/fsdp/group/comm_context.h"
#include "plimsoll/fsdp/param/fsdp_param.h"
#include "plimsoll/fsdp/runtime_observer.h"
#include "plimsoll/nn/hooks/hooks.h"

namespace plimsoll::fsdp {

/// A parameter and its name in its module.
struct NamedParam {
  at::Tensor param;
  std::string name;
};

/// Parameters that are gathered, freed and reduced together. Counterpart of FSDPParamGroup
/// (torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py), with its names.
///
/// All calls come from the thread that runs forward, or from the autograd thread that runs its backward.
class FSDPParamGroup : public std::enable_shared_from_this<FSDPParamGroup> {
 public:
  /// Shards the parameters. `modules` are the modules given to fully_shard.
  FSDPParamGroup(const std::vector<NamedParam>& params, std::vector<torch::nn::Module*> modules,
                 const FSDPParam::Config& config);

  /// Called before the first forward or unshard; may be called again.
  void lazy_init();

  // --- Runtime ---------------------------------------------------------------------------------------------------

  /// Starts the all-gather, unless the parameters are whole or being gathered.
  void unshard(bool async_op = false);
  /// Makes the current stream wait for the all-gather; then the modules have the whole parameters.
  void wait_for_unshard();
  void reshard();

  /// Gathers the parameters, and registers post_backward to run after the backward of the inputs.
  void pre_forward(nn::Tensors& arguments);
  void post_forward();
  void pre_backward(bool default_prefetch);
  /// May be called for a group that took no part in backward.
  void post_backward();
  void finalize_backward();
  void reset_iter_state();

  enum class Pass : std::uint8_t { kForward, kBackward };
  /// Starts the all-gather of another group during this group's pass.
  static void prefetch_unshard(FSDPParamGroup& target, Pass pass);

  // --- State -----------------------------------------------------------------------------------------------------

  const FSDPParams& fsdp_params() const { return fsdp_params_; }
  const std::vector<torch::nn::Module*>& modules() const { return modules_; }
  const MeshInfo& mesh_info() const { return mesh_info_; }
  at::Device device() const { return device_; }
  bool is_sharded() const { return sharded_state_ == ShardedState::kSharded; }
  bool is_unsharded() const { return sharded_state_ == ShardedState::kUnsharded; }
  bool is_sharded_post_forward() const { return sharded_state_ == ShardedState::kShardedPostForward; }
  const std::string& module_fqn() const { return module_fqn_; }
  /// Its modules' names for messages. Works also for the root (its name is empty) and before names are known.
  std::string described() const;
  void add_module_fqn(const std::string& fqn);
  void clear_module_fqn();
  /// Makes `grad()` of the parameters return the shards' gradients again.
  void show_sharded_grads();
  /// Visits each tensor for which the group holds memory now, with its use.
  void for_each_held(const std::function<void(MemoryUse, const at::Tensor&)>& visit) const;

  void set_separate_reduce_scatter_group(bool enable, std::map<std::vector<int>, ProcessGroup>& new_groups);

  // Set by FSDPState and FSDPModule.
  TrainingState training_state = TrainingState::kIdle;
  MeshInfo post_forward_mesh_info;  ///< Null: not resharded after forward.
  std::shared_ptr<FSDPCommContext> comm_ctx = std::make_shared<FSDPCommContext>();
  int param_group_index = 0;  ///< Among the groups of its state.
  int num_param_groups = 1;
  bool reduce_grads = true;
  bool all_reduce_grads = true;  ///< With HSDP; if false, gradients are only reduce-scattered.
  bool reshard_after_backward = true;
  int reduce_scatter_max_input_buffers = 1;
  std::optional<double> gradient_divide_factor;
  bool reduce_scatter_unused_params = false;
  bool force_sum_reduction_for_comms = false;
  bool unshard_async_op = false;
  bool unshard_in_backward = true;
  std::shared_ptr<AllGather> all_gather_comm = std::make_shared<AllGather>();
  std::shared_ptr<ReduceScatter> reduce_scatter_comm = std::make_shared<ReduceScatter>();
  std::function<void(at::Tensor)> all_reduce_hook;
  std::optional<Stream> all_reduce_hook_stream;

 private:
  struct AllReduceState {
    at::Tensor all_reduce_input;
    Event event;
  };

  void init_mp_dtypes();
  void validate_params() const;
  const ProcessGroup& all_gather_process_group() const;
  const ProcessGroup& reduce_scatter_process_group() const;
  bool uses_post_forward_mesh() const { return post_forward_mesh_info && post_forward_mesh_info != mesh_info_; }
  void gather_for_backward(bool default_prefetch);
  void free_and_reduce();
  void copy_out_alone();
  void wait_for_post_backward();
  void recycle_reduce_scatter_inputs();
  std::vector<at::Tensor> take_unsharded_grads(std::vector<FSDPParam*>& with_grad);
  void reduce(const std::vector<FSDPParam*>& with_grad, std::vector<at::Tensor> unsharded_grads, bool partial_group);
  void backward_prefetch();
  void record_post_forward();
  void to_sharded();
  void to_sharded_post_forward();
  void to_unsharded();
  void drop_all_gather();
  void register_post_backward_hook(nn::Tensors& arguments);
  std::string with_fqn(const char* label) const;

  std::vector<torch::nn::Module*> modules_;
  FSDPParams fsdp_params_;
  MeshInfo mesh_info_;
  at::Device device_;
  MixedPrecisionPolicy mp_policy_;
  bool offloads_ = false;
  ShardedState sharded_state_ = ShardedState::kSharded;  // The same for all its parameters.
  std::string module_fqn_;
  bool has_fqn_ = false;
  bool reset_sharded_params_ = false;
  std::optional<at::ScalarType> orig_dtype_;
  std::optional<at::ScalarType> reduce_dtype_;
  std::vector<std::size_t> post_forward_indices_;

  std::optional<AllGatherResult> all_gather_result_;
  Event post_reduce_event_;
  Event reshard_after_forward_event_;
  at::Tensor partial_reduce_output_;
  // Prevents the next group's reduce-scatter from reusing the all-reduced buffer too early.
  std::optional<AllReduceState> all_reduce_state_;
};

}  // namespace plimsoll::fsdp
