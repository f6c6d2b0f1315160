#include "plimsoll/fsdp/group/fsdp_param_group.h"

#include <ATen/Functions.h>
#include <ATen/record_function.h>
#include <c10/core/GradMode.h>

#include <set>
#include <utility>

#include "plimsoll/nn/hooks/autograd_hooks.h"

namespace plimsoll::fsdp {

FSDPParamGroup::FSDPParamGroup(const std::vector<NamedParam>& params, std::vector<torch::nn::Module*> modules,
                               const FSDPParam::Config& config)
    : post_forward_mesh_info(config.post_forward_mesh_info),
      modules_(std::move(modules)),
      mesh_info_(config.mesh_info),
      device_(config.device),
      mp_policy_(config.mp_policy),
      offloads_(std::holds_alternative<CPUOffloadPolicy>(config.offload_policy)) {
  for (const auto& [param, name] : params) {
    fsdp_params_.push_back(std::make_unique<FSDPParam>(param, name, config, *this));
  }
}

// --- Initialization ------------------------------------------------------------------------------------------------

void FSDPParamGroup::lazy_init() {
  if (is_sharded() && !reset_sharded_params_) {
    for (const auto& param : fsdp_params_) param->reset_sharded_param();
    reset_sharded_params_ = true;
  }
  validate_params();
  init_mp_dtypes();
}

void FSDPParamGroup::init_mp_dtypes() {
  // The dtypes of trainable parameters; if all are frozen, those of all parameters, because they can be unfrozen later.
  std::set<at::ScalarType> trainable, others;
  for (const auto& param : fsdp_params_) {
    if (is_sharded()) param->init_dtype_attrs(mp_policy_);
    if (param->param().requires_grad()) {
      trainable.insert(param->orig_dtype());
    } else if (at::isFloatingType(param->orig_dtype())) {
      others.insert(param->orig_dtype());
    }
    reduce_dtype_ = param->reduce_dtype();
  }
  TORCH_CHECK(trainable.size() <= 1, "The trainable parameters of ", described(), " have different dtypes (",
              c10::toString(*trainable.begin()), " and ", c10::toString(*trainable.rbegin()),
              "), but their gradients are reduced together. Give them one dtype before the first forward, or apply "
              "fully_shard to the modules separately.");
  const auto& dtypes = trainable.empty() ? others : trainable;
  orig_dtype_ = dtypes.size() == 1 ? std::optional(*dtypes.begin()) : std::nullopt;
}

void FSDPParamGroup::validate_params() const {
  std::string on_meta, not_on_cpu;
  for (const auto& param : fsdp_params_) {
    if (param->param().is_meta()) on_meta += " '" + param->fqn() + "'";
    if (offloads_ && is_sharded() && !param->param().is_cpu()) not_on_cpu += " '" + param->fqn() + "'";
  }
  TORCH_CHECK(on_meta.empty(), "Parameters are still on the meta device:", on_meta,
              ". Give them memory with fsdp::to_empty(module, device) and values, before the first forward.");
  TORCH_CHECK(not_on_cpu.empty(),
              "With CPUOffloadPolicy the shards stay on the CPU, but these are on another device:", not_on_cpu,
              ". Do not move the module after fully_shard; materialise it with fsdp::to_empty(module, at::kCPU).");
}

void FSDPParamGroup::add_module_fqn(const std::string& fqn) {
  module_fqn_ = has_fqn_ ? module_fqn_ + ", " + fqn : fqn;
  has_fqn_ = true;
}

void FSDPParamGroup::clear_module_fqn() {
  module_fqn_.clear();
  has_fqn_ = false;
}

std::string FSDPParamGroup::described() const {
  if (has_fqn_) return module_fqn_.empty() ? "the root module" : module_fqn_;
  std::string classes;
  for (const auto* module : modules_) classes += (classes.empty() ? "" : ", ") + nn::class_name(*module);
  return classes;
}

void FSDPParamGroup::set_separate_reduce_scatter_group(bool enable,
                                                       std::map<std::vector<int>, ProcessGroup>& new_groups) {
  if (!enable) {
    mesh_info_->reduce_scatter_process_group.reset();
    return;
  }
  const auto ranks = distributed::group_ranks(mesh_info_->shard_process_group);
  auto& group = new_groups[ranks];
  if (!group) group = mesh_info_->reduce_scatter_process_group;
  if (!group) group = distributed::new_group(ranks, {.description = "fsdp_reduce_scatter", .timeout = {}});
  mesh_info_->reduce_scatter_process_group = group;
}

const ProcessGroup& FSDPParamGroup::all_gather_process_group() const {
  return (is_sharded_post_forward() ? post_forward_mesh_info : mesh_info_)->shard_process_group;
}

const ProcessGroup& FSDPParamGroup::reduce_scatter_process_group() const {
  const auto& own = mesh_info_->reduce_scatter_process_group;
  return own ? own : mesh_info_->shard_process_group;
}

// --- Gathering and freeing -----------------------------------------------------------------------------------------

void FSDPParamGroup::unshard(bool async_op) {
  if (all_gather_result_ || is_unsharded()) return;
  if (!unshard_in_backward && training_state == TrainingState::kPreBackward) return;
  if (reshard_after_forward_event_) {
    // The compute stream wrote the data; the all-gather streams read it.
    comm_ctx->all_gather_streams_wait(reshard_after_forward_event_);
    reshard_after_forward_event_.reset();
  }
  for (const auto& param : fsdp_params_) param->check_unchanged();
  const ProcessGroup& group = all_gather_process_group();
  if (group->getSize() == 1) {
    all_gather_result_.emplace();  // No communication for one rank: wait_for_unshard copies.
    return;
  }
  RECORD_USER_SCOPE(with_fqn("FSDP::all_gather"));
  const GroupScope scope(*this);
  const c10::InferenceMode no_inference(false);
  all_gather_result_ = foreach_all_gather(fsdp_params_, group, async_op,
                                          comm_ctx->get_all_gather_streams(async_op, training_state, device_), device_,
                                          *all_gather_comm, described());
}

// Mirrors the path of FSDPParamGroup.wait_for_unshard (torch 2.13) for a group of one rank.
void FSDPParamGroup::copy_out_alone() {
  const at::NoGradGuard no_grad;
  at::Tensor input;  // Keeps the input until the next one exists, as in Python.
  for (const auto& param : fsdp_params_) {
    input = param->all_gather_input();
    param->init_all_gather_output(input.numel(), input.scalar_type(), 1, device_);
    param->alloc_all_gather_output();
    param->all_gather_output().copy_(input);
  }
}

void FSDPParamGroup::wait_for_unshard() {
  if (!all_gather_result_) return;
  const GroupScope scope(*this);
  const c10::InferenceMode no_inference(false);
  const bool async_op = all_gather_result_->all_gather_work != nullptr;
  std::optional<AllGatherState> previous;  // Freed on return, see [Note: Overlapping copy-in and all-gather].
  if (training_state == TrainingState::kForward && comm_ctx->all_gather_state) {
    comm_ctx->all_gather_streams_wait(comm_ctx->all_gather_state->event);
    previous = std::exchange(comm_ctx->all_gather_state, std::nullopt);
  }
  const ProcessGroup& group = all_gather_process_group();
  const bool alone = group->getSize() == 1;
  if (alone) {
    copy_out_alone();
  } else {
    RECORD_USER_SCOPE(with_fqn("FSDP::all_gather_copy_out"));
    foreach_all_gather_copy_out(*all_gather_result_, fsdp_params_, group, described());
  }
  for (const auto& param : fsdp_params_) param->init_unsharded_param();
  to_unsharded();
  const Event copied_out = Stream::current(device_).record_event();
  if (!async_op && training_state == TrainingState::kForward && !alone) {
    comm_ctx->all_gather_state = AllGatherState{std::move(*all_gather_result_), copied_out};
  } else {
    comm_ctx->all_gather_streams_wait(copied_out);
  }
  all_gather_result_.reset();
}

// Waits for an all-gather and drops its result.
void FSDPParamGroup::drop_all_gather() {
  if (!all_gather_result_) return;
  Stream::current(device_).wait_event(all_gather_result_->all_gather_event);
  if (all_gather_result_->all_gather_work) {
    distributed::wait(all_gather_result_->all_gather_work, all_gather_process_group(), "all_gather_single",
                      described());
  }
  all_gather_result_.reset();
}

void FSDPParamGroup::reshard() {
  if (is_unsharded()) {
    for (const auto& param : fsdp_params_) param->check_not_written();
  }
  if (training_state == TrainingState::kForward) {
    if (!post_forward_mesh_info) return;
    if (uses_post_forward_mesh()) {
      to_sharded_post_forward();
      reshard_after_forward_event_ = Stream::current(device_).record_event();
      return;
    }
  }
  to_sharded();
}

void FSDPParamGroup::to_sharded() {
  if (is_sharded()) return;
  for (const auto& param : fsdp_params_) param->to_sharded();
  sharded_state_ = ShardedState::kSharded;
}

void FSDPParamGroup::to_sharded_post_forward() {
  if (is_sharded_post_forward()) return;
  const GroupScope scope(*this);
  const at::NoGradGuard no_grad;
  for (const auto& param : fsdp_params_) param->to_sharded_post_forward();
  sharded_state_ = ShardedState::kShardedPostForward;
}

void FSDPParamGroup::to_unsharded() {
  if (is_unsharded()) return;
  for (const auto& param : fsdp_params_) param->to_unsharded();
  sharded_state_ = ShardedState::kUnsharded;
}

void FSDPParamGroup::show_sharded_grads() {
  for (const auto& param : fsdp_params_) param->show_sharded_grad();
}

// --- Forward -------------------------------------------------------------------------------------------------------

void FSDPParamGroup::pre_forward(nn::Tensors& arguments) {
  RECORD_USER_SCOPE(with_fqn("FSDP::pre_forward"));
  // In a group of modules, the first one that ran has registered post-backward for all.
  const bool entering = training_state != TrainingState::kForward;
  training_state = TrainingState::kForward;
  if (entering && is_unsharded()) {  // Whole from before: possibly written to, or unfrozen since.
    for (const auto& param : fsdp_params_) {
      param->check_not_written();
      param->to_unsharded();
    }
  }
  unshard(unshard_async_op);
  wait_for_unshard();
  if (entering) register_post_backward_hook(arguments);
}

void FSDPParamGroup::post_forward() {
  RECORD_USER_SCOPE(with_fqn("FSDP::post_forward"));
  if (!nn::in_backward()) {  // Not when a checkpoint recomputes forward.
    reshard();
    record_post_forward();
  }
  training_state = TrainingState::kIdle;
}

void FSDPParamGroup::record_post_forward() {
  post_forward_indices_.push_back(comm_ctx->post_forward_order.size());
  comm_ctx->post_forward_order.push_back(weak_from_this());
}

std::string FSDPParamGroup::with_fqn(const char* label) const {
  std::string text = label;
  if (!module_fqn_.empty()) text += " (" + module_fqn_ + ")";
  if (num_param_groups > 1) text += " [pg=" + std::to_string(mesh_info_->shard_mesh_size) + "]";
  return text;
}

}  // namespace plimsoll::fsdp
