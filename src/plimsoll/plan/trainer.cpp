#include "plimsoll/plan/trainer.h"

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <ATen/autocast_mode.h>
#include <c10/core/DefaultDtype.h>

#include <algorithm>

#include "plimsoll/distributed/collectives.h"
#include "plimsoll/distributed/device_mesh.h"
#include "plimsoll/distributed/lone_store.h"
#include "plimsoll/distributed/process_group.h"
#include "plimsoll/fsdp/clip_grad_norm.h"
#include "plimsoll/fsdp/fully_shard.h"
#include "plimsoll/fsdp/param/materialize.h"
#include "plimsoll/nn/device_scope.h"
#include "plimsoll/nn/optim/adamw.h"
#include "plimsoll/nn/optim/sgd.h"

namespace plimsoll::plan {
namespace {

at::ScalarType scalar_type(job::Dtype dtype) {
  return dtype == job::Dtype::kBf16 ? at::kBFloat16 : dtype == job::Dtype::kFp16 ? at::kHalf : at::kFloat;
}

class DefaultDtype {
 public:
  explicit DefaultDtype(at::ScalarType dtype) : before_(c10::get_default_dtype()) {
    c10::set_default_dtype(caffe2::TypeMeta::fromScalarType(dtype));
  }
  ~DefaultDtype() { c10::set_default_dtype(before_); }
  DefaultDtype(const DefaultDtype&) = delete;
  DefaultDtype& operator=(const DefaultDtype&) = delete;

 private:
  caffe2::TypeMeta before_;
};

/// `with torch.autocast("cuda", dtype=…)`.
class Autocast {
 public:
  explicit Autocast(at::ScalarType dtype)
      : enabled_(at::autocast::is_autocast_enabled(at::kCUDA)), dtype_(at::autocast::get_autocast_dtype(at::kCUDA)) {
    at::autocast::set_autocast_enabled(at::kCUDA, true);
    at::autocast::set_autocast_dtype(at::kCUDA, dtype);
    at::autocast::increment_nesting();
  }
  ~Autocast() {
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(at::kCUDA, enabled_);
    at::autocast::set_autocast_dtype(at::kCUDA, dtype_);
  }
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  bool enabled_;
  at::ScalarType dtype_;
};

nn::Implementation implementation(job::OptimizerImpl impl) {
  if (impl == job::OptimizerImpl::kFused) return nn::Implementation::kFused;
  return impl == job::OptimizerImpl::kForLoop ? nn::Implementation::kForLoop : nn::Implementation::kForeach;
}

std::unique_ptr<nn::Optimizer> make_optimizer(const job::Job& job, const std::vector<at::Tensor>& parameters) {
  const auto form = implementation(job.optimizer_impl);
  switch (job.optimizer) {
    case job::OptimizerKind::kSgd:
      return std::make_unique<nn::SGD>(parameters, nn::SGDOptions{.lr = 3e-4, .momentum = 0.9, .implementation = form});
    case job::OptimizerKind::kAdam:
      return std::make_unique<nn::Adam>(
          parameters, nn::AdamOptions{.lr = 3e-4, .betas = {0.9, 0.95}, .weight_decay = 0.1, .implementation = form});
    case job::OptimizerKind::kAdamW:
      break;
  }
  return std::make_unique<nn::AdamW>(
      parameters, nn::AdamWOptions{.lr = 3e-4, .betas = {0.9, 0.95}, .weight_decay = 0.1, .implementation = form});
}

fsdp::ReshardAfterForward of_blocks(const job::Reshard& reshard) {
  if (reshard.kind == job::Reshard::Kind::kToMesh) return static_cast<int>(reshard.ranks);
  return reshard.kind != job::Reshard::Kind::kNever;
}

/// The root's parameters are needed first in backward, so by default they stay.
fsdp::ReshardAfterForward of_root(const job::Reshard& reshard, bool is_all) {
  if (is_all && reshard.kind == job::Reshard::Kind::kToMesh) return static_cast<int>(reshard.ranks);
  if (reshard.kind == job::Reshard::Kind::kAlways) return true;
  if (reshard.kind == job::Reshard::Kind::kNever) return false;
  return {};
}

distributed::DeviceMesh make_mesh(const job::Job& job) {
  const auto ranks = static_cast<int>(job.gpus), replicas = static_cast<int>(job.replicas);
  if (replicas == 1) return distributed::DeviceMesh::init(at::kCUDA, {ranks});
  return distributed::DeviceMesh::init(at::kCUDA, {replicas, ranks / replicas}, {"replicate", "shard"});
}

/// The ranks take the state of rank 0's generator before they draw shards' values, as DTensor has it: the first
/// collective of the default group.
void agree_on_seed() {
  at::Tensor state = at::zeros({2}, at::TensorOptions(at::kCUDA).dtype(at::kLong));
  distributed::all_reduce(state, distributed::default_group(), c10d::ReduceOp::SUM, false, "the generator's state");
}

std::map<std::string, std::int64_t> count_parameters(const models::LanguageModel& model) {
  std::map<std::string, std::int64_t> counts;
  for (const auto& item : model->named_modules()) {
    std::int64_t& count = counts[item.key()];
    for (const auto& parameter : item.value()->parameters()) count += parameter.numel();
  }
  std::int64_t& whole = counts[""];
  whole = 0;
  for (const auto& parameter : model->distinct_parameters()) whole += parameter.numel();
  return counts;
}

}  // namespace

Trainer::Trainer(const job::Job& job, const architecture::Architecture& architecture)
    : job_(job), sequence_(job::sequence(job, architecture)), device_(at::kCUDA, 0) {
  if (architecture.experts) experts_ = architecture.experts->count;
  at::globalContext().setSDPUseCuDNN(false);  // Its workspace is not known.
  if (sharded()) {
    // Norms of offloaded gradients are reduced on the CPU.
    distributed::init_process_group({.backend = offloads() ? "cpu:fake,cuda:nccl" : "nccl",
                                     .store = c10::make_intrusive<distributed::LoneStore>(),
                                     .rank = static_cast<int>(job_.rank),
                                     .world_size = static_cast<int>(job_.gpus),
                                     .device = device_});
  }
  {
    const DefaultDtype dtype(scalar_type(job_.master_dtype));
    const nn::DeviceScope where(sharded() ? at::Device(at::kMeta) : device_);
    model_ = models::LanguageModel(
        architecture,
        models::LanguageModelOptions{
            .length = sequence_, .norm = job_.norm, .checkpoint = job_.checkpoint, .loss_fp32 = job_.loss_fp32});
  }
  parameters_of_ = count_parameters(model_);
  const auto idle = idle_host();
  if (sharded()) {
    shard();
    agree_on_seed();
  }
  model_->init_parameters();
  model_->copy_turns([](at::IntArrayRef sizes) { return at::empty(sizes, at::kComplexFloat); });
  parameters_ = model_->distinct_parameters();
  optimizer_ = make_optimizer(job_, parameters_);
}

Trainer::~Trainer() = default;

void Trainer::shard() {
  fsdp::FullyShardOptions options{
      .mesh = make_mesh(job_),
      .mp_policy = {.param_dtype = scalar_type(job_.param_dtype), .reduce_dtype = scalar_type(job_.reduce_dtype)}};
  if (offloads()) options.offload_policy = fsdp::CPUOffloadPolicy{};
  if (experts_ != 0 && job_.gpus / job_.replicas > experts_) {
    // Fewer experts than ranks to share them: along their width, as torchtitan has it.
    options.shard_placement_fn = [](const at::Tensor& parameter) -> fsdp::ShardPlacement {
      return fsdp::Shard{parameter.dim() == 3 ? 1 : 0};
    };
  }
  const auto& blocks = model_->blocks();
  const auto group = static_cast<std::size_t>(job_.wrap.blocks);
  for (std::size_t first = 0; group != 0 && first < blocks.size(); first += group) {
    const auto end = std::min(first + group, blocks.size());
    // The backward needs the last block first: it would be gathered again at once.
    const bool kept = job_.keep_last_block && end == blocks.size();
    options.reshard_after_forward = kept ? false : of_blocks(job_.reshard_after_forward);
    fsdp::fully_shard(std::vector<fsdp::ModuleRef>(blocks.begin() + first, blocks.begin() + end), options);
  }
  options.reshard_after_forward = of_root(job_.reshard_after_forward, /*is_all=*/group == 0);
  fsdp::fully_shard(model_, options);
  fsdp::to_empty(model_, offloads() ? at::Device(at::kCPU) : device_);
  if (offloads()) model_->move_buffers(device_);
}

void Trainer::train_micro_batch(std::int64_t micro, PhaseMeter& meter) {
  if (job_.accum_no_sync && sharded()) {
    fsdp::FSDPModule(model_).set_requires_gradient_sync(micro == job_.grad_accum - 1);
  }
  // Nobody reads the values, and memory that is not written takes no room on the machine that plans.
  const auto batch = [&] { return at::empty({job_.batch, sequence_}, at::kLong).to(device_); };
  tokens_ = batch();
  targets_ = batch();
  if (on_inputs) on_inputs(tokens_, targets_);
  meter.enter("forward");
  {
    std::optional<Autocast> autocast;
    if (!sharded() && job_.param_dtype != job_.master_dtype) autocast.emplace(scalar_type(job_.param_dtype));
    logits_ = model_(tokens_);
    loss_ = at::cross_entropy_loss(logits_.flatten(0, 1), targets_.flatten());
  }
  if (!job_.keep_logits) logits_.reset();
  // Python makes the first gradient before it enters the engine, and drops it after.
  const auto gradient = at::full_like(loss_, 1.0 / static_cast<double>(job_.grad_accum));
  meter.enter("backward");
  loss_.backward(gradient);
  meter.enter("other");
}

std::unique_ptr<Trainer::HostScope> Trainer::idle_host() {
  if (!offloads()) return nullptr;
  return std::unique_ptr<HostScope>(new HostScope{.here = {nn::ModeLevel::kBelowAutograd, idle_host_},
                                                  .backward = nn::BackwardModeScope(idle_host_)});
}

void Trainer::run(PhaseMeter& meter) {
  const auto idle = idle_host();
  for (std::int64_t step = 0; step < job_.steps; ++step) {
    optimizer_->zero_grad();
    for (std::int64_t micro = 0; micro < job_.grad_accum; ++micro) train_micro_batch(micro, meter);
    if (job_.clip_grad_norm) {
      const nn::ClipGradNormOptions options{.foreach = job_.optimizer_impl != job::OptimizerImpl::kForLoop};
      if (sharded()) {
        fsdp::clip_grad_norm_(parameters_, *job_.clip_grad_norm, options);
      } else {
        nn::clip_grad_norm_(parameters_, *job_.clip_grad_norm, options);
      }
    }
    meter.enter("optimizer");
    optimizer_->step();
    meter.end_step();
  }
}

}  // namespace plimsoll::plan
