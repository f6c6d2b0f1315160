#include "plimsoll/fsdp/fsdp_param.h"

#include <ATen/Functions.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/variable.h>

#include <mutex>
#include <unordered_map>
#include <utility>

#include "plimsoll/fsdp/shard_size.h"
#include "plimsoll/fsdp/storage.h"
#include "plimsoll/nn/autograd_hooks.h"

namespace plimsoll::fsdp {
namespace {

// The parameters under FSDP, by identity. A parameter that lives is never mistaken: FSDPParam holds it.
class ManagedParams {
 public:
  static ManagedParams& instance() {
    static auto* const params = new ManagedParams;  // Never destroyed: models may outlive statics.
    return *params;
  }
  const FSDPParam* find(const at::Tensor& param) {
    const std::lock_guard lock(mutex_);
    const auto found = params_.find(param.unsafeGetTensorImpl());
    return found == params_.end() ? nullptr : found->second;
  }
  void add(const at::Tensor& param, const FSDPParam* managed) {
    const std::lock_guard lock(mutex_);
    params_.emplace(param.unsafeGetTensorImpl(), managed);
  }
  void remove(const at::Tensor& param) {
    const std::lock_guard lock(mutex_);
    params_.erase(param.unsafeGetTensorImpl());
  }

 private:
  std::mutex mutex_;
  std::unordered_map<const c10::TensorImpl*, const FSDPParam*> params_;
};

bool same_storage(const at::Tensor& a, const at::Tensor& b) {
  // An empty shard has no address to compare.
  const void* const address = a.storage().data();
  return address != nullptr && address == b.storage().data();
}

}  // namespace

const FSDPParam* managed(const at::Tensor& param) { return ManagedParams::instance().find(param); }

FSDPParam::FSDPParam(at::Tensor param, std::string name, const Config& config)
    : param_(std::move(param)),
      name_(std::move(name)),
      fqn_(name_),
      post_forward_mesh_info_(config.post_forward_mesh_info),
      device_(config.device),
      offload_to_cpu_(std::holds_alternative<CPUOffloadPolicy>(config.offload_policy)),
      pin_memory_(offload_to_cpu_ && std::get<CPUOffloadPolicy>(config.offload_policy).pin_memory),
      orig_dtype_(param_.scalar_type()) {
  const c10::InferenceMode no_inference(false);
  const at::NoGradGuard no_grad;
  init_sharded_param(config);
  if (post_forward_mesh_info_) init_post_forward_size(*post_forward_mesh_info_);
  ManagedParams::instance().add(param_, this);
}

FSDPParam::~FSDPParam() {
  gradient_hook_.remove();
  ManagedParams::instance().remove(param_);
}

// Mirrors FSDPParam._init_sharded_param (torch 2.13).
void FSDPParam::init_sharded_param(const Config& config) {
  auto placement = resolve_shard_placement(*config.shard_placement_fn, param_, config.mesh_info);
  mesh_info_ = std::move(placement.mesh_info);
  TORCH_CHECK(param_.device() == device_ || param_.is_meta(), "Expected the parameter ", name_, " on ", device_,
              ", found it on ", param_.device(), '.');
  TORCH_CHECK_NOT_IMPLEMENTED(param_.is_contiguous(), "The parameter ", name_, " of shape ", param_.sizes(),
                              " and strides ", param_.strides(),
                              " is not contiguous, and FSDP shards only contiguous ones. Make it contiguous before "
                              "fully_shard: parameter.set_data(parameter.contiguous()).");
  const auto given_dim = placement.placement.value_or(Shard{}).dim;
  shard_dim_ = given_dim < 0 ? given_dim + param_.dim() : given_dim;
  TORCH_CHECK_VALUE(shard_dim_ >= 0 && shard_dim_ < param_.dim(), "shard_placement_fn asks for dimension ", given_dim,
                    " of the parameter ", name_, ", which has shape ", param_.sizes(), '.');

  const at::Tensor data = param_.variable_data();
  orig_size_ = data.sizes().vec();
  contiguous_orig_stride_ = contiguous_strides(orig_size_);
  const auto dim_size = data.size(shard_dim_);
  TORCH_CHECK_NOT_IMPLEMENTED(shard_dim_ == 0 || dim_size % mesh_info_->shard_mesh_size == 0, "The parameter ", name_,
                              " of shape ", data.sizes(), " cannot be split along dimension ", shard_dim_, " over ",
                              mesh_info_->shard_mesh_size,
                              " ranks: only dimension 0 may be split unevenly. Return another Shard for it.");
  const ChunkRange chunk = chunk_range(dim_size, mesh_info_->shard_mesh_size, mesh_info_->shard_mesh_rank);
  sharded_size_ = with_dim(orig_size_, shard_dim_, chunk.length);
  contiguous_sharded_stride_ = contiguous_strides(sharded_size_);
  padded_sharded_param_size_ = with_dim(orig_size_, shard_dim_, chunk.padded_length);

  // Padded from the start, so that no all-gather has to.
  at::Tensor padded = data.new_zeros(padded_sharded_param_size_);
  const at::Tensor shard = data.narrow(shard_dim_, chunk.start, chunk.length);
  if (shard.numel() > 0) padded.narrow(shard_dim_, 0, chunk.length).copy_(shard);
  if (offload_to_cpu_ && !padded.is_meta()) {
    padded = padded.cpu();
    if (pin_memory_) padded = padded.pin_memory();
  }
  sharded_param_data_ = padded.view(-1);
  sharded_ = padded.narrow(shard_dim_, 0, shard.numel() > 0 ? chunk.length : 0);
  show(Shown::kSharded, sharded_);
}

// Mirrors FSDPParam._init_sharded_post_forward_param_metadata (torch 2.13), which always splits along dimension 0.
void FSDPParam::init_post_forward_size(const FSDPMeshInfo& mesh_info) {
  const ChunkRange chunk = chunk_range(orig_size_[0], mesh_info.shard_mesh_size, mesh_info.shard_mesh_rank);
  const auto size = with_dim(orig_size_, 0, chunk.length);
  const bool empty = c10::multiply_integers(size) == 0;
  post_forward_size_ = empty ? with_dim(orig_size_, shard_dim_, 0) : size;
  contiguous_post_forward_stride_ = contiguous_strides(post_forward_size_);
}

void FSDPParam::init_dtype_attrs(const MixedPrecisionPolicy& mp_policy) {
  orig_dtype_ = param_.scalar_type();
  // Absent means: no cast. Gradients come in the param dtype, so a reduce dtype equal to it needs none either.
  param_dtype_ = mp_policy.param_dtype;
  reduce_dtype_ = mp_policy.reduce_dtype == mp_policy.param_dtype ? std::nullopt : mp_policy.reduce_dtype;
  if (param_dtype_ == orig_dtype_ || !at::isFloatingType(orig_dtype_)) param_dtype_.reset();
}

// --- Forms ---------------------------------------------------------------------------------------------------------

void FSDPParam::show(Shown form, const at::Tensor& data) {
  if (data.is_meta() == param_.is_meta()) {
    param_.set_data(data);
  } else {
    // set_data refuses the way to and from meta; below it there is nothing that minds.
    param_.unsafeGetTensorImpl()->shallow_copy_from(data.getIntrusivePtr());
  }
  shown_ = form;
}

void FSDPParam::free_unsharded_param() {
  if (all_gather_output_.defined()) free_storage(all_gather_output_);
}

void FSDPParam::to_sharded() {
  show(Shown::kSharded, sharded_);
  free_unsharded_param();
  sharded_state_ = ShardedState::kSharded;
}

void FSDPParam::to_sharded_post_forward() {
  TORCH_INTERNAL_ASSERT(sharded_state_ == ShardedState::kUnsharded && post_forward_mesh_info_);
  const auto numel = all_gather_output_.numel();
  const int world_size = post_forward_mesh_info_->shard_mesh_size;
  TORCH_CHECK(numel % world_size == 0, "The gathered parameter ", fqn_, " has ", numel,
              " elements, which cannot be split over the ", world_size, " ranks of reshard_after_forward.");
  const auto shard_numel = numel / world_size;
  // A copy, so that the whole can be freed.
  post_forward_data_ =
      all_gather_output_.narrow(0, shard_numel * post_forward_mesh_info_->shard_mesh_rank, shard_numel).clone();
  show(Shown::kPostForward, post_forward_data_.as_strided(post_forward_size_, contiguous_post_forward_stride_, 0));
  free_unsharded_param();
  sharded_state_ = ShardedState::kShardedPostForward;
}

void FSDPParam::to_unsharded() {
  if (param_.requires_grad() && param_.is_leaf()) {
    // See [Note: One tensor, two forms]. Registered here, since parameters may be frozen and thawed at any time.
    if (!gradient_hook_registered_) {
      gradient_hook_ = nn::register_tensor_hook(param_, [this](const at::Tensor&) {
        show_unsharded_grad();
        return at::Tensor();
      });
      gradient_hook_registered_ = true;
    }
  }
  show(Shown::kUnsharded, unsharded_);
  post_forward_data_.reset();  // All-gathered by now, so that nothing reads it any more.
  sharded_state_ = ShardedState::kUnsharded;
}

// Mirrors FSDPParam.reset_sharded_param (torch 2.13).
void FSDPParam::reset_sharded_param() {
  if (param_.is_meta() || shown_ != Shown::kSharded) return;
  TORCH_CHECK(param_.sizes() == sharded_size_, "The parameter ", described(), " was given data of shape ",
              param_.sizes(), " after fully_shard, where it holds this rank's shard of shape ",
              at::IntArrayRef(sharded_size_),
              ". Load whole tensors with fsdp::load_full_state, or change the parameter before fully_shard.");
  const at::NoGradGuard no_grad;
  at::Tensor local = param_.variable_data();
  const bool same = same_storage(sharded_param_data_, local);
  bool updated = false;
  if (local.sizes() != at::IntArrayRef(padded_sharded_param_size_) && !same) {
    at::Tensor padded = local.new_zeros(padded_sharded_param_size_);
    const auto length = local.numel() > 0 ? local.size(shard_dim_) : 0;
    padded.narrow(shard_dim_, 0, length).copy_(local);
    local = padded;
    updated = true;
  }
  if (pin_memory_ && !local.is_pinned()) {
    local = local.cpu().pin_memory();
    updated = true;
  }
  if (!same) {
    sharded_param_data_ = local.view(-1);
    sharded_ = local.narrow(shard_dim_, 0, sharded_size_[static_cast<std::size_t>(shard_dim_)]);
  }
  if (updated) show(Shown::kSharded, sharded_);
}

void FSDPParam::check_unchanged() const {
  if (shown_ != Shown::kSharded) return;
  if (param_.storage().unsafeGetStorageImpl() == sharded_.storage().unsafeGetStorageImpl() &&
      param_.scalar_type() == orig_dtype_) [[likely]] {
    return;
  }
  TORCH_CHECK(false, "The parameter ", described(), " was given other data after the first forward (now ",
              param_.scalar_type(), ' ', param_.sizes(), " on ", param_.device(), ", before ", orig_dtype_, ' ',
              at::IntArrayRef(sharded_size_), " on ", sharded_.device(),
              "), and FSDP would go on with the old. Change values in place (parameter.copy_(…) under no_grad), call "
              "Module::to before the first forward, or fsdp::reset_sharded_params(module) after it.");
}

std::string FSDPParam::described() const { return "'" + fqn_ + "'"; }

// --- All-gather ----------------------------------------------------------------------------------------------------

const at::Tensor& FSDPParam::flat_shard() const {
  return sharded_state_ == ShardedState::kSharded ? sharded_param_data_ : post_forward_data_;
}

at::Tensor FSDPParam::all_gather_input() const {
  TORCH_INTERNAL_ASSERT(sharded_state_ != ShardedState::kUnsharded);
  at::Tensor input = flat_shard();
  if (sharded_state_ == ShardedState::kSharded && offload_to_cpu_) input = input.to(device_, /*non_blocking=*/true);
  if (param_dtype_ && input.scalar_type() != *param_dtype_) input = input.to(*param_dtype_);
  return input;
}

void FSDPParam::init_all_gather_output(std::int64_t numel, at::ScalarType dtype, int world_size, at::Device device) {
  if (all_gather_output_.defined()) return;
  all_gather_output_ = at::empty({numel * world_size}, at::TensorOptions().dtype(dtype).device(device));
}

void FSDPParam::init_unsharded_param() {
  if (unsharded_.defined()) return;
  unsharded_ = all_gather_output_.as_strided(orig_size_, contiguous_orig_stride_, 0);
}

// --- Gradients -----------------------------------------------------------------------------------------------------

void FSDPParam::show_unsharded_grad() {
  if (shows_unsharded_grad_) return;
  // A module that does not unshard in backward has the whole parameter's shape, without its memory, for its gradient.
  if (shown_ != Shown::kUnsharded && unsharded_.defined()) show(Shown::kUnsharded, unsharded_);
  std::swap(hidden_grad_, param_.mutable_grad());
  std::swap(hidden_post_accumulate_hooks_, torch::autograd::impl::post_acc_grad_hooks(param_));
  shows_unsharded_grad_ = true;
}

void FSDPParam::show_sharded_grad() {
  if (!shows_unsharded_grad_) return;
  std::swap(hidden_grad_, param_.mutable_grad());
  std::swap(hidden_post_accumulate_hooks_, torch::autograd::impl::post_acc_grad_hooks(param_));
  shows_unsharded_grad_ = false;
  if (shown_ == Shown::kUnsharded && sharded_state_ != ShardedState::kUnsharded) show(Shown::kSharded, sharded_);
}

at::Tensor FSDPParam::unsharded_grad() const {
  return shows_unsharded_grad_ ? static_cast<const at::Tensor&>(param_.grad()) : hidden_grad_;
}

void FSDPParam::clear_unsharded_grad() {
  (shows_unsharded_grad_ ? param_.mutable_grad() : hidden_grad_) = at::Tensor();
}

void FSDPParam::accumulate_unsharded_grad_if_needed() {
  if (!unsharded_accumulated_grad.defined()) return;
  const at::Tensor grad = unsharded_grad();
  if (!grad.defined()) return;
  const at::NoGradGuard no_grad;
  unsharded_accumulated_grad.add_(grad);
  clear_unsharded_grad();
}

void FSDPParam::to_accumulated_grad_if_needed() {
  const at::Tensor grad = unsharded_grad();
  if (!reduce_dtype_ || !grad.defined() || grad.scalar_type() == *reduce_dtype_) return;
  const at::NoGradGuard no_grad;
  clear_unsharded_grad();
  unsharded_accumulated_grad = grad.to(*reduce_dtype_);
}

void FSDPParam::set_sharded_grad(at::Tensor grad) {
  TORCH_INTERNAL_ASSERT(!shows_unsharded_grad_);
  param_.mutable_grad() = std::move(grad);
}

bool FSDPParam::has_post_accumulate_grad_hooks() const {
  return torch::autograd::impl::post_acc_grad_hooks(param_) != nullptr;
}

void FSDPParam::run_post_accumulate_grad_hooks() {
  if (const auto& hooks = torch::autograd::impl::post_acc_grad_hooks(param_)) (*hooks)(param_);
}

}  // namespace plimsoll::fsdp
