#pragma once

#include <ATen/Functions.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "distributed/ranks.h"
#include "fsdp/case.h"
#include "fsdp/join.h"
#include "fsdp/kinds.h"
#include "plimsoll/distributed/device_mesh.h"
#include "plimsoll/distributed/process_group.h"
#include "plimsoll/fsdp/fully_shard.h"
#include "plimsoll/fsdp/param/materialize.h"
#include "plimsoll/nn/device_scope.h"
#include "plimsoll/nn/optim/adamw.h"
#include "plimsoll/nn/optim/sgd.h"

/// Small trainings with state that is saved, loaded and compared.
namespace checkpoint_tests {

using namespace plimsoll;
using scenarios::Case;

/// A folder that test and ranks share; passed to the ranks by value.
struct Folder {
  std::array<char, 64> text{};
  Folder() {
    std::string name = access("/dev/shm", W_OK) == 0 ? "/dev/shm/plimsoll-XXXXXX" : "/tmp/plimsoll-XXXXXX";
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make " + name);
    name.copy(text.data(), text.size() - 1);
  }
  std::filesystem::path path() const { return text.data(); }
  void remove() const { std::filesystem::remove_all(path()); }
};

inline std::string contents(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

inline void join_for_training(const ranks::Rank& rank) {
  at::set_num_threads(1);
  small::join(rank, std::chrono::seconds(20));
}

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// A model of a case, sharded, with its optimizer. Words: model, tied, group, hsdp, shard_dim, second_mesh, ignored,
/// frozen, param, reduce, offload, built=meta, optimizer=adamw|sgd.
template <class Kind>
class Training {
 public:
  /// Values depend on the seed; if the model is built on meta they are undefined.
  explicit Training(const Case& c, int seed = 0) : case_(c), kind_(c) {
    {
      std::unique_ptr<nn::DeviceScope> scope;
      if (c.has("built")) scope = std::make_unique<nn::DeviceScope>(at::kMeta);
      model = kind_.build();
    }
    if (!c.has("built")) fill(seed);
    if (c.has("frozen")) {
      for (auto& parameter : kind_.blocks(model)[0]->parameters()) parameter.set_requires_grad(false);
    }
    if (c.has("ignored")) model->head->weight.set_requires_grad(false);  // Training would make it differ between ranks.
    shard();
    if (c.has("built")) fsdp::to_empty(model, at::kCPU);
    std::vector<at::Tensor> parameters;
    for (const auto& parameter : model->parameters()) {
      const auto same = [&](const at::Tensor& known) { return known.is_same(parameter); };
      if (parameter.requires_grad() && std::none_of(parameters.begin(), parameters.end(), same)) {
        parameters.push_back(parameter);
      }
    }
    if (c.text("optimizer") == "sgd") {
      optimizer = std::make_unique<nn::SGD>(parameters, nn::SGDOptions{.lr = 0.01, .momentum = 0.9});
    } else {
      optimizer = std::make_unique<nn::AdamW>(parameters, nn::AdamWOptions{.lr = 0.01});
    }
  }

  /// The losses of steps `from` to `to`, counted from 0.
  std::vector<double> run(int from, int to) {
    std::vector<double> losses;
    for (int step = from; step < to; ++step) {
      auto batch = kind_.data(step * 1000 + distributed::get_rank());
      auto loss = kind_.loss(model, batch);
      loss.backward();
      optimizer->step();
      optimizer->zero_grad();
      losses.push_back(loss.template item<double>());
    }
    return losses;
  }

  /// Copies of this rank's shards.
  std::vector<at::Tensor> shards() const {
    std::vector<at::Tensor> found;
    for (const auto& parameter : model->parameters()) found.push_back(parameter.detach().clone());
    return found;
  }

  typename Kind::Model model{nullptr};
  std::unique_ptr<nn::Optimizer> optimizer;

 private:
  void fill(int seed) {
    const at::NoGradGuard no_grad;
    for (auto& parameter : model->parameters()) {
      parameter.copy_(scenarios::numbers(parameter.numel(), ++seed).view(parameter.sizes()));
    }
  }

  void shard() {
    const int world = distributed::get_world_size(), replicas = case_.number("hsdp", 1);
    const auto mesh =
        replicas == 1 ? distributed::DeviceMesh::init(at::kCPU, {world})
                      : distributed::DeviceMesh::init(at::kCPU, {replicas, world / replicas}, {"replicate", "shard"});
    fsdp::FullyShardOptions options = {.mesh = mesh};
    options.mp_policy = {.param_dtype = case_.dtype("param"), .reduce_dtype = case_.dtype("reduce")};
    if (case_.has("offload")) options.offload_policy = fsdp::CPUOffloadPolicy{.pin_memory = false};
    if (case_.has("shard_dim")) {
      options.shard_placement_fn = [ranks = mesh.size(-1)](const at::Tensor& parameter) -> fsdp::ShardPlacement {
        if (parameter.dim() < 2 || parameter.size(1) % ranks != 0) return {};
        return fsdp::Shard{1};
      };
    }
    if (case_.has("second_mesh")) {
      const auto second = std::make_shared<fsdp::FSDPMeshInfo>(
          distributed::DeviceMesh::init(at::kCPU, {2, world / 2}, {"replicate", "shard"}));
      options.shard_placement_fn = [second](const at::Tensor& parameter) -> fsdp::ShardPlacement {
        if (parameter.dim() == 1) return {};
        return fsdp::ShardPlacementResult{std::nullopt, second};
      };
    }
    if (case_.has("ignored")) options.ignored_params = {model->head->weight};
    for (const auto& block : kind_.blocks(model)) fsdp::fully_shard(block, options);
    if constexpr (std::is_same_v<Kind, scenarios::GPTCase>) {
      if (case_.has("group")) {
        fsdp::fully_shard(std::vector<fsdp::ModuleRef>{model->tokens, model->norm, model->head}, options);
      }
    }
    fsdp::fully_shard(model, options);
  }

  Case case_;
  Kind kind_;
};

/// Calls `work` with the case's kind of Training as a template argument.
template <class Work>
void with_kind(const char* line, Work work) {
  const Case c(line);
  if (c.text("model") == "gpt") return work(c, std::type_identity<Training<scenarios::GPTCase>>());
  work(c, std::type_identity<Training<scenarios::NetworkCase>>());
}

inline bool same(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!at::equal(a[i], b[i])) return false;
  }
  return true;
}

inline constexpr std::array kCases = {
    "model=network",
    "model=network optimizer=sgd",
    "model=gpt param=bf16 reduce=f32",
    "model=network offload=1",
    "model=network hsdp=2",
    "model=gpt shard_dim=1",
    "model=gpt tied=1 group=1",
    "model=network second_mesh=1",
    "model=network frozen=1",
    "model=gpt ignored=1",
    "model=network built=meta",
};

}  // namespace checkpoint_tests
