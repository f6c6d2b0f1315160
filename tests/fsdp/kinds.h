#pragma once

#include <ATen/Functions.h>

#include <memory>
#include <utility>
#include <vector>

#include "fsdp/case.h"
#include "fsdp/llama.h"
#include "fsdp/models.h"

/// Builds, names and feeds the models of the scenarios: NetworkCase and GPTCase of
/// tests/python/programs/models/fsdp_models.py, LlamaCase of tests/python/programs/models/fsdp_llama.py.
namespace plimsoll::scenarios {

/// Doubles between -1/4 and 1/4 that look random and are the same in every language.
inline at::Tensor numbers(std::int64_t numel, std::int64_t seed) {
  return at::arange(numel).mul(7919).add(seed * 104729).remainder(100003).to(at::kDouble).div(100003).sub(0.5).div(2);
}

struct Batch {
  at::Tensor inputs;
  at::Tensor targets;  ///< Undefined if the model needs none.
};

class NetworkCase {
 public:
  using Model = Network;
  using Block = nn::Hooked<ResidualImpl>;

  explicit NetworkCase(const Case& c)
      : dim_(c.number("dim", 17)),
        outer_(c.number("outer", 3)),
        spare_(c.has("unused")),
        checkpointed_(c.has("checkpoint")),
        times_(c.number("times", 1)) {
    for (const std::string& size : split(c.text("hidden", "13+5+2"), '+')) hidden_.push_back(std::stoi(size));
  }

  Network build() const { return Network(dim_, hidden_, outer_, spare_, checkpointed_, times_); }

  std::vector<std::shared_ptr<Block>> blocks(const Network& model) const {
    std::vector<std::shared_ptr<Block>> blocks;
    for (const auto& layer : *model->layers) blocks.push_back(std::dynamic_pointer_cast<Block>(layer));
    if (spare_) blocks.push_back(model->branch.ptr());
    return blocks;
  }

  Batch data(std::int64_t seed) const {
    return {numbers(kBatch * dim_, seed).to(at::kFloat).view({kBatch, dim_}).mul(4), {}};
  }

  at::Tensor loss(Network& model, const Batch& batch) const {
    auto output = model(batch.inputs);
    return output.square().mean();
  }

 private:
  static constexpr int kBatch = 4;
  int dim_, outer_;
  bool spare_, checkpointed_;
  int times_;
  std::vector<int> hidden_;
};

/// Texts for next-word prediction.
class TextCase {
 public:
  Batch data(std::int64_t seed) const {
    const int numel = kBatch * context_;
    const auto text = at::arange(numel + 1).mul(7919).add(seed * 104729).remainder(100003).remainder(vocabulary_);
    return {text.narrow(0, 0, numel).view({kBatch, context_}), text.narrow(0, 1, numel).contiguous()};
  }

  template <class Model>
  at::Tensor loss(Model& model, const Batch& batch) const {
    auto logits = model(batch.inputs);
    logits = logits.view({-1, vocabulary_});
    return at::cross_entropy_loss(logits, batch.targets);
  }

 protected:
  explicit TextCase(const Case& c) : vocabulary_(c.number("vocabulary", 37)), context_(c.number("context", 6)) {}

  template <class Block, class Model>
  static std::vector<std::shared_ptr<Block>> layers_of(const Model& model) {
    std::vector<std::shared_ptr<Block>> layers;
    for (const auto& layer : *model->layers) layers.push_back(std::dynamic_pointer_cast<Block>(layer));
    return layers;
  }

  static constexpr int kBatch = 2;
  int vocabulary_, context_;
};

class LlamaCase : public TextCase {
 public:
  using Model = Llama;
  using Block = nn::Hooked<LlamaBlockImpl>;

  explicit LlamaCase(const Case& c)
      : TextCase(c),
        options_{.vocabulary = vocabulary_,
                 .context = context_,
                 .dim = c.number("dim", 16),
                 .hidden = c.number("hidden", 24),
                 .heads = c.number("heads", 4),
                 .kv_heads = c.number("kv_heads", 2),
                 .layers = c.number("layers", 3),
                 .checkpointed = c.has("checkpoint")} {}

  Llama build() const { return Llama(options_); }
  std::vector<std::shared_ptr<Block>> blocks(const Llama& model) const { return layers_of<Block>(model); }

 private:
  LlamaOptions options_;
};

class GPTCase : public TextCase {
 public:
  using Model = GPT;
  using Block = nn::Hooked<BlockImpl>;

  explicit GPTCase(const Case& c)
      : TextCase(c),
        options_{.vocabulary = vocabulary_,
                 .context = context_,
                 .dim = c.number("dim", 8),
                 .heads = c.number("heads", 2),
                 .layers = c.number("layers", 3),
                 .tied = c.has("tied"),
                 .checkpointed = c.has("checkpoint"),
                 .headless = c.has("chunked")} {}

  GPT build() const { return GPT(options_); }
  std::vector<std::shared_ptr<Block>> blocks(const GPT& model) const { return layers_of<Block>(model); }

  /// The head and the loss of one text at a time, so that not all logits exist at once.
  at::Tensor backward_by_chunks(GPT& model, const Batch& batch) const {
    const auto hidden = model(batch.inputs);
    const auto leaf = hidden.detach().requires_grad_();
    at::Tensor total;
    const auto texts = leaf.unbind(), targets = batch.targets.view({kBatch, context_}).unbind();
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const auto loss = at::cross_entropy_loss(model->head(texts[i]), targets[i]);
      loss.backward();
      total = total.defined() ? total + loss.detach() : loss.detach();
    }
    hidden.backward(leaf.grad());
    return total;
  }

 private:
  GPTOptions options_;
};

}  // namespace plimsoll::scenarios
