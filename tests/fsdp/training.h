#pragma once

#include <ATen/Functions.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fsdp/case.h"
#include "fsdp/kinds.h"
#include "plimsoll/distributed/device_mesh.h"
#include "plimsoll/distributed/process_group.h"
#include "plimsoll/fsdp/clip_grad_norm.h"
#include "plimsoll/fsdp/fully_shard.h"
#include "plimsoll/fsdp/param/materialize.h"
#include "plimsoll/nn/device_scope.h"
#include "plimsoll/nn/optim/adamw.h"
#include "plimsoll/nn/optim/sgd.h"

/// Training of a case under FSDP, like tests/python/programs/fsdp_training.py with torch's.
namespace plimsoll::scenarios {

using Named = std::pair<std::string, at::Tensor>;

/// Each parameter once, as Python lists them: C++ lists a tied parameter twice.
inline std::vector<Named> named_parameters(const torch::nn::Module& module) {
  std::vector<Named> named;
  for (const auto& item : module.named_parameters()) {
    const auto same = [&](const Named& known) { return known.second.is_same(item.value()); };
    if (std::none_of(named.begin(), named.end(), same)) named.emplace_back(item.key(), item.value());
  }
  return named;
}

/// The placement of a parameter's shards: a dimension, and the ranks of a group. No group: the parameter is whole.
struct Placement {
  std::int64_t dim = 0;
  distributed::ProcessGroup group;
};

/// A sharded model with its optimizer. `look(phase)` is called before each part of a step.
template <class Kind>
class Training {
 public:
  using Look = std::function<void(const std::string& phase)>;
  using See = std::function<void(int step, const std::vector<at::Tensor>& losses)>;

  Training(const Case& c, at::DeviceType device, Look look)
      : case_(c), device_(device), look_(std::move(look)), kind_(c) {
    look_("build");
    {
      std::optional<nn::DeviceScope> scope;
      if (c.has("built")) scope.emplace(at::Device(c.text("built")));
      model_ = kind_.build();
    }
    blocks_ = kind_.blocks(model_);
    if (c.has("store")) model_->to(*c.dtype("store"));
    for (const auto& [name, parameter] : named_parameters(*model_)) sizes_[name] = parameter.sizes().vec();
    freeze();
    fill();
    look_("shard");
    shard();
    configure();
    if (c.text("built") == "meta") {
      look_("materialise");
      fsdp::to_empty(model_, c.has("offload") ? at::Device(at::kCPU) : at::Device(device_));
      fill();
    }
    look_("optimizer");
    make_optimizer();
  }

  const torch::nn::Module& model() const { return *model_; }
  fsdp::ModuleRef root() const { return model_; }
  nn::Optimizer& optimizer() { return *optimizer_; }
  std::vector<Named> parameters() const { return named_parameters(*model_); }
  const std::vector<std::int64_t>& sizes(const std::string& name) const { return sizes_.at(name); }

  Placement placement(const std::string& name) const {
    const auto& sizes = sizes_.at(name);
    if (case_.has("ignored") && name == "head.weight") return {};
    if (second_ && on_second_mesh(sizes)) return {0, second_->shard_process_group};
    return {shard_dim(sizes), mesh_->get_group(mesh_->ndim() - 1)};
  }

  void run(int rank, const See& see) {
    const int micros = case_.has("accumulate") ? 2 : 1;
    for (int step = 0; step < case_.number("steps", 3); ++step) {
      const std::string name = "step " + std::to_string(step);
      std::vector<at::Tensor> losses;
      if (case_.has("by_hand")) {
        look_(name + " unshard");
        unshard_by_hand();
      }
      for (int micro = 0; micro < micros; ++micro) {
        before_backward(micro == micros - 1);
        losses.push_back(backward(name + "." + std::to_string(micro), step * 1000 + micro * 100 + rank));
      }
      if (case_.has("by_hand")) {
        look_(name + " reshard");
        fsdp::FSDPModule(model_).reshard();
        fsdp::FSDPModule(blocks_[0]).reshard();
      }
      see(step, losses);
      if (case_.has("clip")) fsdp::clip_grad_norm_(model_->parameters(), std::stod(case_.text("clip")));
      look_(name + " optimizer");
      optimizer_->step();
      if (case_.has("optimizer_event")) {
        const c10::impl::VirtualGuardImpl guard(device_);
        auto event = std::make_shared<c10::Event>(device_);
        event->record(guard.getStream(guard.getDevice()));
        fsdp::FSDPModule(model_).set_post_optim_event(event);
      }
      look_(name + " zero_grad");
      optimizer_->zero_grad();
    }
  }

  /// A batch on the device of the model.
  Batch batch(std::int64_t seed) const {
    auto batch = kind_.data(seed);
    batch.inputs = batch.inputs.to(device_);
    if (batch.targets.defined()) batch.targets = batch.targets.to(device_);
    return batch;
  }

  /// One step with only its passes and the optimizer's; `look(point)` after each part.
  void watched_step(const Batch& batch, const Look& look) {
    look("before");
    watched_passes(batch, look);
    look("loss dropped");
    optimizer_->step();
    look("step");
    optimizer_->zero_grad();
    look("zero_grad");
  }

 private:
  void watched_passes(const Batch& batch, const Look& look) {
    auto loss = kind_.loss(model_, batch);
    look("forward");
    loss.backward();
    look("backward");
  }

  void freeze() {
    if (!case_.has("frozen")) return;  // Whole blocks, and single parameters of others.
    for (auto& parameter : blocks_[1]->parameters()) parameter.set_requires_grad(false);
    for (auto& parameter : blocks_[0]->parameters()) {
      if (parameter.dim() == 1) parameter.set_requires_grad(false);
    }
  }

  void fill() {
    if (device_ != at::kCPU && !case_.has("fill")) return;
    const at::NoGradGuard no_grad;
    std::int64_t seed = 0;
    for (const auto& [name, parameter] : named_parameters(*model_)) {
      ++seed;
      if (parameter.is_meta()) continue;
      const auto& sizes = sizes_.at(name);
      const auto full = numbers(c10::multiply_integers(sizes), seed).view(sizes).to(parameter.scalar_type());
      if (parameter.sizes() == at::IntArrayRef(sizes)) {
        parameter.copy_(full);
      } else if (parameter.numel() > 0) {  // Materialised as a shard; only one mesh exists.
        parameter.copy_(full.chunk(distributed::get_world_size())[distributed::get_rank()]);
      }
    }
    if constexpr (std::is_same_v<Kind, GPTCase>) {
      if (!model_->order.is_meta()) model_->order.copy_(at::arange(model_->order.numel()));
    }
  }

  /// The blocks that are sharded separately.
  std::vector<std::shared_ptr<typename Kind::Block>> units() const {
    if (case_.text("wrap") == "root") return {};
    return blocks_;
  }

  std::int64_t shard_dim(at::IntArrayRef sizes) const {
    const std::int64_t dim = case_.number("shard_dim");
    return dim != 0 && sizes.size() >= 2 && sizes[dim] % mesh_->size(-1) == 0 ? dim : 0;
  }

  static bool on_second_mesh(at::IntArrayRef sizes) { return sizes.size() == 2 && sizes[0] < sizes[1]; }

  void shard() {
    const int world = distributed::get_world_size();
    const auto two_dimensional = [&](int replicas) {
      return distributed::DeviceMesh::init(device_, {replicas, world / replicas}, {"replicate", "shard"});
    };
    const int hsdp = case_.number("hsdp");
    mesh_ = hsdp != 0 ? two_dimensional(hsdp) : distributed::DeviceMesh::init(device_, {world});
    fsdp::FullyShardOptions options;
    options.mesh = mesh_;
    const std::string reshard = case_.text("reshard");
    if (reshard == "true" || reshard == "false") {
      options.reshard_after_forward = reshard == "true";
    } else if (!reshard.empty()) {
      options.reshard_after_forward = std::stoi(reshard);
    }
    options.mp_policy.param_dtype = case_.dtype("param");
    options.mp_policy.reduce_dtype = case_.dtype("reduce");
    options.mp_policy.cast_forward_inputs = case_.number("cast_inputs", 1) != 0;
    if (case_.has("offload")) {
      options.offload_policy = fsdp::CPUOffloadPolicy{.pin_memory = case_.text("offload") == "pin"};
    }
    if (case_.has("shard_dim")) {
      options.shard_placement_fn = [this](const at::Tensor& parameter) -> fsdp::ShardPlacement {
        const std::int64_t dim = shard_dim(parameter.sizes());
        if (dim == 0) return {};
        return fsdp::Shard{dim};
      };
    }
    if (case_.has("second_mesh")) {
      const auto mesh = two_dimensional(2);
      second_ = std::make_shared<fsdp::FSDPMeshInfo>(case_.text("second_mesh") == "hsdp" ? mesh : mesh["shard"]);
      options.shard_placement_fn = [second = second_](const at::Tensor& parameter) -> fsdp::ShardPlacement {
        if (!on_second_mesh(parameter.sizes())) return {};
        return fsdp::ShardPlacementResult{std::nullopt, second};
      };
    }
    if (case_.has("ignored")) {
      options.ignored_params = {model_->head->weight};
      model_->head->weight.set_data(model_->head->weight.data().to(device_));
    }
    for (const auto& block : units()) fsdp::fully_shard(block, options);
    if constexpr (std::is_same_v<Kind, GPTCase>) {
      if (case_.has("separate")) fsdp::fully_shard(model_->tokens, options);
      if (case_.has("group")) {
        fsdp::fully_shard(std::vector<fsdp::ModuleRef>{model_->tokens, model_->norm, model_->head}, options);
      }
    }
    options.mp_policy.output_dtype = case_.dtype("output");
    fsdp::fully_shard(model_, options);
  }

  void configure() {
    fsdp::FSDPModule model(model_);
    const auto sharded = units();
    std::vector<fsdp::FSDPModule> blocks(sharded.begin(), sharded.end());
    std::vector<fsdp::FSDPModule> all = blocks;
    all.push_back(model);
    if (case_.has("prefetch")) {
      const auto ahead = static_cast<std::size_t>(case_.number("prefetch"));
      const auto first = [ahead](std::vector<fsdp::FSDPModule> modules) {
        modules.erase(modules.begin() + std::min(ahead, modules.size()), modules.end());
        return modules;
      };
      for (std::size_t i = 0; i < blocks.size(); ++i) {
        blocks[i].set_modules_to_forward_prefetch(first({blocks.begin() + i + 1, blocks.end()}));
        blocks[i].set_modules_to_backward_prefetch(first({blocks.rend() - i, blocks.rend()}));
      }
      model.set_modules_to_forward_prefetch(first(blocks));
      model.set_modules_to_backward_prefetch(first({blocks.rbegin(), blocks.rend()}));
    }
    if (case_.has("set_reshard_after_forward")) {
      model.set_reshard_after_forward(case_.number("set_reshard_after_forward") != 0);
    }
    if (case_.has("reduce_unused")) model.set_reduce_scatter_unused_params(true);
    if (case_.has("input_buffers")) model.set_reduce_scatter_max_input_buffers(case_.number("input_buffers"));
    if constexpr (std::is_same_v<Kind, GPTCase>) {
      if (case_.has("unshard_in_backward")) fsdp::FSDPModule(model_->tokens).set_unshard_in_backward(false);
    }
    if (case_.has("separate_reduce_group")) model.set_separate_reduce_scatter_group(true);
    for (fsdp::FSDPModule& module : all) {
      if (case_.has("divide")) module.set_gradient_divide_factor(std::stod(case_.text("divide")));
      if (case_.has("force_sum")) module.set_force_sum_reduction_for_comms(true);
      if (case_.has("all_reduce_hook")) module.set_all_reduce_hook([](at::Tensor gradients) { gradients.mul_(0.5); });
      if (case_.has("unshard_async")) module.set_unshard_async_op(true);
    }
    if constexpr (std::is_same_v<Kind, NetworkCase>) {
      if (case_.text("unused") == "odd_ranks") {
        for (std::size_t i = 0; i < model_->layers->size(); ++i) {
          blocks_[i]->use_spare = distributed::get_rank() % 2 == 0;
        }
      }
    }
  }

  void make_optimizer() {
    const std::string name = case_.text("optimizer", "adamw_foreach");
    std::vector<at::Tensor> parameters;
    for (auto& [_, parameter] : named_parameters(*model_)) parameters.push_back(parameter);
    if (name == "sgd") {
      optimizer_ = std::make_unique<nn::SGD>(
          parameters, nn::SGDOptions{.lr = 0.01, .momentum = 0.9, .implementation = nn::Implementation::kForLoop});
      return;
    }
    const std::map<std::string, nn::Implementation> forms = {{"adamw_forloop", nn::Implementation::kForLoop},
                                                             {"adamw_foreach", nn::Implementation::kForeach},
                                                             {"adamw_fused", nn::Implementation::kFused}};
    optimizer_ =
        std::make_unique<nn::AdamW>(parameters, nn::AdamWOptions{.lr = 0.01, .implementation = forms.at(name)});
  }

  /// Settings of each backward pass of a step.
  void before_backward(bool last) {
    fsdp::FSDPModule model(model_);
    if (case_.among("accumulate", "no_sync")) model.set_requires_gradient_sync(last);
    if (case_.among("accumulate", "no_all_reduce")) model.set_requires_all_reduce(last);
    if (case_.among("accumulate", "keep")) model.set_reshard_after_backward(last);
    if (case_.among("accumulate", "last")) model.set_is_last_backward(last);
  }

  void unshard_by_hand() {
    std::vector<fsdp::UnshardHandle> handles;
    for (std::size_t i = 0; i < 2; ++i) handles.push_back(fsdp::FSDPModule(blocks_[i]).unshard(/*async_op=*/true));
    fsdp::FSDPModule(model_).unshard();
    for (auto& handle : handles) handle.wait();
  }

  at::Tensor backward(const std::string& name, std::int64_t seed) {
    auto batch = kind_.data(seed);
    if (batch.targets.defined()) batch.targets = batch.targets.to(device_);
    look_(name + " forward");
    if constexpr (std::is_same_v<Kind, GPTCase>) {
      if (case_.has("chunked")) return kind_.backward_by_chunks(model_, batch);
    }
    auto loss = kind_.loss(model_, batch);
    look_(name + " backward");
    loss.backward();
    look_(name + " after backward");
    return device_ == at::kCPU ? loss.detach() : at::Tensor();
  }

  Case case_;
  at::DeviceType device_;
  Look look_;
  Kind kind_;
  typename Kind::Model model_{nullptr};
  std::vector<std::shared_ptr<typename Kind::Block>> blocks_;
  std::map<std::string, std::vector<std::int64_t>> sizes_;
  std::optional<distributed::DeviceMesh> mesh_;
  fsdp::MeshInfo second_;
  std::unique_ptr<nn::Optimizer> optimizer_;
};

/// Calls `work` with a Training of the case's kind of model.
template <class Work>
auto with_training(const Case& c, at::DeviceType device, const std::function<void(const std::string&)>& look,
                   Work work) {
  const std::string model = c.text("model");
  if (model == "gpt") return work(std::make_unique<Training<GPTCase>>(c, device, look));
  if (model == "llama") return work(std::make_unique<Training<LlamaCase>>(c, device, look));
  TORCH_CHECK(model == "network", "expected model=network, model=gpt or model=llama, found ", model);
  return work(std::make_unique<Training<NetworkCase>>(c, device, look));
}

}  // namespace plimsoll::scenarios
