#include "plimsoll/models/language_model.h"

#include <ATen/Functions.h>

#include <utility>

namespace plimsoll::models {
namespace {

struct BuiltBlock {
  std::shared_ptr<torch::nn::Module> module;
  RunBlock run;
};

BuiltBlock build_block(const architecture::Architecture& architecture, job::Norm norm, std::int64_t index) {
  if (architecture.family == architecture::Family::kGPT2) {
    const auto block = GPT2Block(architecture).ptr();
    return {block, [block](const at::Tensor& x, const at::Tensor&) { return block->forward(x); }};
  }
  const auto block = Block(architecture, norm, index).ptr();
  return {block, [block](const at::Tensor& x, const at::Tensor& turns) { return block->forward(x, turns); }};
}

}  // namespace

LanguageModelImpl::LanguageModelImpl(const architecture::Architecture& a, const LanguageModelOptions& options)
    : rope_theta_(a.rope_theta), head_dim_(a.head_dim), loss_fp32_(options.loss_fp32) {
  embedding_ = register_module("embedding", nn::Embedding(a.vocabulary, a.dim));
  layers_ = register_module("layers", torch::nn::ModuleList());
  for (std::int64_t i = 0; i < a.blocks; ++i) add_block(a, i, options);
  if (a.family == architecture::Family::kGPT2) {
    positions_ = register_module("positions", nn::Embedding(a.positions, a.dim));
    layer_norm_ = register_module("norm", layer_norm(a));
  } else {
    rms_norm_ = register_module("norm", RMSNorm(a.dim, a.norm_epsilon, options.norm));
    // Twice the necessary length, as in torchtitan's first models.
    turns_ = register_buffer("turns", at::empty({2 * options.length, head_dim_ / 2}, at::kComplexFloat));
  }
  // As in Python, the head allocates a weight before it is tied; the allocator keeps that memory.
  auto weight = at::empty({a.vocabulary, a.dim});
  if (a.tied_embeddings) weight = embedding_->weight;
  output_ = register_module("output", Head(std::move(weight)));
}

void LanguageModelImpl::add_block(const architecture::Architecture& a, std::int64_t index,
                                  const LanguageModelOptions& options) {
  auto [module, run] = build_block(a, options.norm, index);
  const auto kind = options.checkpoint.of(index);
  if (kind != job::CheckpointKind::kNone) {
    const auto wrapped = Checkpointed(module, run, kind).ptr();
    module = wrapped;
    run = [wrapped](const at::Tensor& x, const at::Tensor& turns) { return wrapped->forward(x, turns); };
  }
  layers_->push_back(module);
  blocks_.push_back(std::move(module));
  run_.push_back(std::move(run));
}

std::vector<at::Tensor> LanguageModelImpl::distinct_parameters() const {
  std::vector<at::Tensor> distinct;
  for (auto& parameter : parameters()) {
    // Only the head can be tied; the embedding is first.
    const bool tied = !distinct.empty() && distinct.front().is_same(parameter);
    if (!tied) distinct.push_back(std::move(parameter));
  }
  return distinct;
}

void LanguageModelImpl::move_buffers(at::Device device) {
  if (turns_.defined()) turns_.set_data(turns_.to(device));
}

void LanguageModelImpl::init_weights() {
  copy_turns([&](at::IntArrayRef sizes) { return rotations(head_dim_, sizes[0], rope_theta_); });
  init_parameters();
}

void LanguageModelImpl::copy_turns(const std::function<at::Tensor(at::IntArrayRef)>& table) {
  const at::NoGradGuard no_grad;
  if (turns_.defined()) turns_.copy_(table(turns_.sizes()));
}

void LanguageModelImpl::init_parameters() {
  const at::NoGradGuard no_grad;
  for (const auto& parameter : distinct_parameters()) {
    if (parameter.dim() > 1) {
      parameter.normal_(0, 0.02);
    } else {
      parameter.fill_(1);
    }
  }
}

at::Tensor LanguageModelImpl::forward(at::Tensor tokens) {
  auto x = embedding_(tokens);
  if (!positions_.is_empty()) {
    auto places = at::arange(tokens.size(1), at::TensorOptions(tokens.device()).dtype(at::kLong));
    places = positions_(places);
    x = x + places;
  }
  for (const auto& run : run_) x = run(x, turns_);
  auto logits = rms_norm_.is_empty() ? layer_norm_(x) : rms_norm_(x);
  logits = output_(logits);
  return loss_fp32_ ? logits.to(at::kFloat) : logits;
}

}  // namespace plimsoll::models
