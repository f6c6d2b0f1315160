#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plimsoll/fsdp/group/streams.h"
#include "plimsoll/fsdp/param/mesh_info.h"
#include "plimsoll/fsdp/policies.h"
#include "plimsoll/nn/hooks/hook_list.h"

namespace plimsoll::fsdp {

class FSDPParamGroup;

enum class ShardedState : std::uint8_t {
  kSharded,             ///< The module has the shard; nothing else of the parameter takes memory.
  kShardedPostForward,  ///< Freed after forward, except a larger shard over fewer ranks, which backward gathers.
  kUnsharded,           ///< The module has the whole parameter; the shard exists beside it.
};

/// One parameter under FSDP: its shard, the whole parameter while its module runs, and the gradients of both.
/// Counterpart of FSDPParam (torch/distributed/fsdp/_fully_shard/_fsdp_param.py).
///
/// [Note: One tensor, two forms]
/// In Python, a module gets another Parameter object for each form. In C++, modules and optimizers keep handles to
/// their parameter. So the object stays and its *data* changes (set_data): the shard or the whole. State that Python
/// keeps on the two objects follows the data:
///
///  - The whole parameter's storage is allocated once, then freed and filled again, because autograd may have saved
///    views of it. The version counter belongs to the object and does not change.
///  - `grad()` is the shard's gradient, except during backward. A hook on the parameter sees the first gradient of a
///    backward, sets the shard's gradient aside, and shows the whole parameter's (if a backward that did not reduce
///    left one). Post-backward removes it again. So `zero_grad()` is correct anywhere in the loop.
///  - Hooks after accumulation belong to the shard's gradient: they are set aside too, and run with the reduced
///    gradient.
///  - Each form has its own gradient accumulator. So a module that runs twice adds its gradients in the same place as
///    Python, for any dtypes of the two forms.
///  - A value computed from the parameter at rest (for example a weight penalty) sees the shard, and its gradient is
///    added to the shard's. It must not be mixed with the other form: the gradient's shape reveals that.
class FSDPParam {
 public:
  struct Config {
    MeshInfo mesh_info;
    MeshInfo post_forward_mesh_info;  ///< Null: kept whole after forward.
    at::Device device;
    const ShardPlacementFn* shard_placement_fn;
    MixedPrecisionPolicy mp_policy;
    AnyOffloadPolicy offload_policy;
  };

  /// Shards the parameter at once. `name` is its name in its module; `group` outlives this object.
  FSDPParam(at::Tensor param, std::string name, const Config& config, const FSDPParamGroup& group);
  ~FSDPParam();
  FSDPParam(const FSDPParam&) = delete;
  FSDPParam& operator=(const FSDPParam&) = delete;

  /// The parameter object of the module and the optimizer.
  const at::Tensor& param() const { return param_; }
  const std::string& fqn() const { return fqn_; }
  const FSDPParamGroup& group() const { return group_; }
  void set_fqn(std::string fqn) { fqn_ = std::move(fqn); }

  // --- Properties ------------------------------------------------------------------------------------------------

  const MeshInfo& mesh_info() const { return mesh_info_; }
  std::int64_t shard_dim() const { return shard_dim_; }
  at::IntArrayRef orig_size() const { return orig_size_; }
  at::IntArrayRef sharded_size() const { return sharded_size_; }
  at::IntArrayRef contiguous_sharded_stride() const { return contiguous_sharded_stride_; }
  at::IntArrayRef padded_sharded_param_size() const { return padded_sharded_param_size_; }
  at::ScalarType orig_dtype() const { return orig_dtype_; }
  std::optional<at::ScalarType> param_dtype() const { return param_dtype_; }
  std::optional<at::ScalarType> reduce_dtype() const { return reduce_dtype_; }
  bool offload_to_cpu() const { return offload_to_cpu_; }
  bool pin_memory() const { return pin_memory_; }
  at::Device device() const { return device_; }

  // --- The state machine -----------------------------------------------------------------------------------------

  ShardedState sharded_state() const { return sharded_state_; }
  void to_sharded();
  void to_sharded_post_forward();
  /// REQUIRES: all_gather_output() is filled, init_unsharded_param() was called.
  void to_unsharded();

  /// The dtypes in effect; set in the first forward, because modules may change their parameters' dtypes until then.
  void init_dtype_attrs(const MixedPrecisionPolicy& mp_policy);
  /// Adopts new data of the parameter (from Module::to, from loading, from materialising on meta).
  void reset_sharded_param();
  /// Throws if the module's shard is not the one that would be gathered.
  void check_unchanged() const;
  /// Throws if the whole parameter was written to or replaced: the shards would not receive the change.
  void check_not_written() const;
  /// Throws if an optimizer would step on the whole parameter with the shard's gradient.
  void check_steppable() const;

  // --- All-gather ------------------------------------------------------------------------------------------------

  /// Flat, on the device, in the dtype of the all-gather.
  at::Tensor all_gather_input() const;
  /// Flat, padded, in the stored dtype: the source for a copy of many parameters at once. REQUIRES: not unsharded.
  const at::Tensor& flat_shard() const;
  const at::Tensor& sharded_param_data() const { return sharded_param_data_; }
  const at::Tensor& post_forward_data() const { return post_forward_data_; }
  /// Flat: the shards of all ranks. Undefined before the first all-gather.
  const at::Tensor& all_gather_output() const { return all_gather_output_; }
  /// Allocates it if it was freed.
  void alloc_all_gather_output();
  void init_all_gather_output(std::int64_t numel, at::ScalarType dtype, int world_size, at::Device device);
  void init_unsharded_param();
  bool has_unsharded_param() const { return unsharded_.defined(); }
  const at::Tensor& unsharded_param() const { return unsharded_; }

  // --- Gradients -------------------------------------------------------------------------------------------------

  /// The shard's gradient and the whole parameter's; undefined if absent.
  at::Tensor sharded_grad() const;
  at::Tensor unsharded_grad() const;
  void clear_unsharded_grad();
  at::Tensor unsharded_accumulated_grad;  ///< In the reduce dtype, from backwards that did not reduce.
  void accumulate_unsharded_grad_if_needed();
  void to_accumulated_grad_if_needed();
  /// Announces gradients of the whole parameter although it is not gathered.
  void expect_unsharded_grad() { expects_unsharded_grad_ = true; }
  /// Makes `grad()` of the parameter return the shard's gradient again.
  void show_sharded_grad();
  /// REQUIRES: show_sharded_grad() was called since the last backward.
  void set_sharded_grad(at::Tensor grad);
  bool has_post_accumulate_grad_hooks() const;
  void run_post_accumulate_grad_hooks();

  Event grad_offload_event;  ///< The end of the gradient's copy to the CPU.

 private:
  enum class Shown : std::uint8_t { kSharded, kPostForward, kUnsharded };
  void init_sharded_param(const Config& config);
  void init_post_forward_size(const FSDPMeshInfo& mesh_info);
  void show(Shown form, const at::Tensor& data);
  void register_gradient_hook();
  void on_gradient(const at::Tensor& gradient);
  void show_unsharded_grad();
  void free_unsharded_param();

  at::Tensor param_;
  const FSDPParamGroup& group_;
  std::string name_;
  std::string fqn_;
  MeshInfo mesh_info_;
  MeshInfo post_forward_mesh_info_;
  at::Device device_;
  bool offload_to_cpu_;
  bool pin_memory_;
  std::int64_t shard_dim_ = 0;
  std::vector<std::int64_t> orig_size_, contiguous_orig_stride_;
  std::vector<std::int64_t> sharded_size_, contiguous_sharded_stride_;
  std::vector<std::int64_t> padded_sharded_param_size_;
  std::vector<std::int64_t> post_forward_size_, contiguous_post_forward_stride_;
  at::ScalarType orig_dtype_;
  std::optional<at::ScalarType> param_dtype_;
  std::optional<at::ScalarType> reduce_dtype_;

  ShardedState sharded_state_ = ShardedState::kSharded;
  Shown shown_ = Shown::kUnsharded;
  at::Tensor sharded_param_data_;  // Flat, padded.
  at::Tensor sharded_;             // The view of it that the module has.
  at::Tensor post_forward_data_;   // Flat; from kShardedPostForward until the parameter is whole again.
  at::Tensor all_gather_output_;
  at::Tensor unsharded_;  // A view of it in the parameter's shape.

  std::int64_t whole_version_ = 0;  // The parameter's version when it became whole.

  bool shows_unsharded_grad_ = false;
  bool expects_unsharded_grad_ = false;
  at::Tensor hidden_grad_;  // The gradient of the other form.
  std::unique_ptr<torch::autograd::PostAccumulateGradHook> hidden_post_accumulate_hooks_;
  c10::weak_intrusive_ptr<torch::autograd::Node> hidden_accumulator_{c10::intrusive_ptr<torch::autograd::Node>()};
  nn::HookHandle gradient_hook_;
  bool gradient_hook_registered_ = false;
  // For callbacks that may outlive this object.
  std::shared_ptr<FSDPParam*> self_ = std::make_shared<FSDPParam*>(this);
};

/// FSDP's object for a parameter of any module; null if FSDP does not manage it. Valid while its module lives.
const FSDPParam* managed(const at::Tensor& param);

}  // namespace plimsoll::fsdp
