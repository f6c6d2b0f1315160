#include "plimsoll/fsdp/param/fsdp_param.h"

#include <ATen/Functions.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/variable.h>

#include <mutex>
#include <unordered_map>
#include <utility>

#include "plimsoll/fsdp/runtime_observer.h"

namespace plimsoll::fsdp {
namespace {

// The parameters under FSDP, by identity. FSDPParam holds the parameter, so an address is not reused.
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

// The unsharded parameter's storage stays while its memory is freed and allocated again: autograd keeps views of it,
// and they must see the memory that exists in backward. Allocates on the current stream.
void alloc_storage(const at::Tensor& tensor) {
  c10::StorageImpl& storage = *tensor.storage().unsafeGetStorageImpl();
  const auto bytes = static_cast<std::size_t>(tensor.numel()) * tensor.itemsize();
  if (storage.nbytes() == bytes) return;
  const c10::OptionalDeviceGuard guard(storage.device());
  storage.set_data_ptr_noswap(storage.allocator()->allocate(bytes));
  storage.set_nbytes(bytes);
}

void free_storage(const at::Tensor& tensor) {
  c10::StorageImpl& storage = *tensor.storage().unsafeGetStorageImpl();
  if (storage.nbytes() == 0) return;
  storage.set_data_ptr_noswap(at::DataPtr(nullptr, storage.device()));
  storage.set_nbytes(0);
}

}  // namespace

const FSDPParam* managed(const at::Tensor& param) { return ManagedParams::instance().find(param); }

FSDPParam::FSDPParam(at::Tensor param, std::string name, const Config& config, const FSDPParamGroup& group)
    : param_(std::move(param)),
      group_(group),
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
  param_.mutable_grad().reset();  // The whole parameter's gradient from before.
  ManagedParams::instance().add(param_, this);
}

FSDPParam::~FSDPParam() {
  *self_ = nullptr;
  gradient_hook_.remove();
  ManagedParams::instance().remove(param_);
}

// Mirrors FSDPParam._init_sharded_param (torch 2.13).
void FSDPParam::init_sharded_param(const Config& config) {
  auto placement = resolve_shard_placement(*config.shard_placement_fn, param_, config.mesh_info);
  mesh_info_ = std::move(placement.mesh_info);
  TORCH_CHECK(param_.device() == device_ || param_.is_meta(), "Expected the parameter ", name_, " on ", device_,
              ", found it on ", param_.device(), '.');
  TORCH_CHECK_NOT_IMPLEMENTED(
      param_.is_contiguous(), "The parameter ", name_, " of shape ", param_.sizes(), " and strides ", param_.strides(),
      " is not contiguous, but FSDP shards only contiguous parameters. Make it contiguous before "
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

  // Padded now, so that all-gathers do not pad.
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

// Always splits along dimension 0. Mirrors FSDPParam._init_sharded_post_forward_param_metadata (torch 2.13).
void FSDPParam::init_post_forward_size(const FSDPMeshInfo& mesh_info) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      shard_dim_ == 0 || &mesh_info == mesh_info_.get(), "The parameter ", name_, " is sharded along dimension ",
      shard_dim_, ", which cannot be combined with reshard_after_forward to fewer ranks. Use true or false.");
  const ChunkRange chunk = chunk_range(orig_size_[0], mesh_info.shard_mesh_size, mesh_info.shard_mesh_rank);
  const auto size = with_dim(orig_size_, 0, chunk.length);
  const bool empty = c10::multiply_integers(size) == 0;
  post_forward_size_ = empty ? with_dim(orig_size_, shard_dim_, 0) : size;
  contiguous_post_forward_stride_ = contiguous_strides(post_forward_size_);
}

void FSDPParam::init_dtype_attrs(const MixedPrecisionPolicy& mp_policy) {
  orig_dtype_ = param_.scalar_type();
  // Absent means: no cast. Gradients have the param dtype, so an equal reduce dtype needs no cast either.
  param_dtype_ = mp_policy.param_dtype;
  reduce_dtype_ = mp_policy.reduce_dtype == mp_policy.param_dtype ? std::nullopt : mp_policy.reduce_dtype;
  if (param_dtype_ == orig_dtype_ || !at::isFloatingType(orig_dtype_)) param_dtype_.reset();
}

// --- Forms ---------------------------------------------------------------------------------------------------------

void FSDPParam::show(Shown form, const at::Tensor& data) {
  namespace impl = torch::autograd::impl;
  // See [Note: One tensor, two forms]: set_data drops the accumulator if dtype or device change.
  const bool changes_accumulator =
      (form == Shown::kUnsharded) != (shown_ == Shown::kUnsharded) && param_.requires_grad() && param_.is_leaf();
  c10::weak_intrusive_ptr<torch::autograd::Node> accumulator = hidden_accumulator_;
  if (changes_accumulator) {
    hidden_accumulator_ = c10::weak_intrusive_ptr<torch::autograd::Node>(impl::try_get_grad_accumulator(param_));
  }
  if (data.is_meta() == param_.is_meta()) {
    param_.set_data(data);
  } else {
    // set_data refuses to change to and from meta; this lower-level call does not.
    param_.unsafeGetTensorImpl()->shallow_copy_from(data.getIntrusivePtr());
  }
  if (changes_accumulator) impl::set_grad_accumulator(param_, std::move(accumulator));
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
  const MemoryScope memory(MemoryUse::kPostForwardShard);
  // A copy, so that the whole can be freed.
  post_forward_data_ =
      all_gather_output_.narrow(0, shard_numel * post_forward_mesh_info_->shard_mesh_rank, shard_numel).clone();
  show(Shown::kPostForward, post_forward_data_.as_strided(post_forward_size_, contiguous_post_forward_stride_, 0));
  free_unsharded_param();
  sharded_state_ = ShardedState::kShardedPostForward;
}

void FSDPParam::to_unsharded() {
  register_gradient_hook();
  show(Shown::kUnsharded, unsharded_);
  whole_version_ = param_._version();
  post_forward_data_.reset();  // The all-gather has read it.
  sharded_state_ = ShardedState::kUnsharded;
}

// Mirrors FSDPParam.reset_sharded_param (torch 2.13).
void FSDPParam::reset_sharded_param() {
  if (param_.is_meta() || shown_ != Shown::kSharded) return;
  TORCH_CHECK(param_.sizes() == sharded_size_, "The parameter '", fqn_, "' was given data of shape ", param_.sizes(),
              " after fully_shard, but it holds this rank's shard of shape ", at::IntArrayRef(sharded_size_),
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
  const GroupScope scope(group_);
  notify(MemoryUse::kShardedParam, sharded_param_data_);
}

void FSDPParam::check_unchanged() const {
  if (shown_ != Shown::kSharded) return;
  TORCH_CHECK(param_.scalar_type() == orig_dtype_, "The parameter '", fqn_, "' is ", param_.scalar_type(),
              " after the first forward, but was ", orig_dtype_,
              ". Change dtypes before the first forward, or give a MixedPrecisionPolicy to fully_shard.");
  TORCH_CHECK(param_.storage().unsafeGetStorageImpl() == sharded_.storage().unsafeGetStorageImpl(), "The parameter '",
              fqn_, "' was given other data after the first forward (now ", param_.sizes(), " on ", param_.device(),
              ", before ", at::IntArrayRef(sharded_size_), " on ", sharded_.device(),
              "), but FSDP still uses the old data. Change values in place (parameter.copy_(…) under no_grad), call "
              "Module::to before the first forward, or fsdp::reset_sharded_params(module) after it.");
}

void FSDPParam::check_not_written() const {
  if (sharded_state_ != ShardedState::kUnsharded || shown_ != Shown::kUnsharded) return;
  const bool replaced = param_.storage().unsafeGetStorageImpl() != unsharded_.storage().unsafeGetStorageImpl();
  TORCH_CHECK(
      !replaced && param_._version() == whole_version_, "The whole parameter '", fqn_, "' was ",
      replaced ? "given other data" : "written to",
      ". The change would be lost: only the shards are kept. Call FSDPModule::reshard() on its module first. (The "
      "root's parameters stay whole after a forward until backward; after one without gradients they stay whole.)");
}

// --- All-gather ----------------------------------------------------------------------------------------------------

const at::Tensor& FSDPParam::flat_shard() const {
  return sharded_state_ == ShardedState::kSharded ? sharded_param_data_ : post_forward_data_;
}

at::Tensor FSDPParam::all_gather_input() const {
  TORCH_INTERNAL_ASSERT(sharded_state_ != ShardedState::kUnsharded);
  at::Tensor input = flat_shard();
  const MemoryScope memory(MemoryUse::kAllGatherInput);
  if (sharded_state_ == ShardedState::kSharded && offload_to_cpu_) input = input.to(device_, /*non_blocking=*/true);
  if (param_dtype_ && input.scalar_type() != *param_dtype_) input = input.to(*param_dtype_);
  return input;
}

void FSDPParam::init_all_gather_output(std::int64_t numel, at::ScalarType dtype, int world_size, at::Device device) {
  if (all_gather_output_.defined()) return;
  const MemoryScope memory(MemoryUse::kUnshardedParam);
  all_gather_output_ = at::empty({numel * world_size}, at::TensorOptions().dtype(dtype).device(device));
}

void FSDPParam::alloc_all_gather_output() {
  const MemoryScope memory(MemoryUse::kUnshardedParam);
  alloc_storage(all_gather_output_);
}

void FSDPParam::init_unsharded_param() {
  if (unsharded_.defined()) return;
  unsharded_ = all_gather_output_.as_strided(orig_size_, contiguous_orig_stride_, 0);
}

}  // namespace plimsoll::fsdp
