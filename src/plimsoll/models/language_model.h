#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/container/modulelist.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "plimsoll/architecture/architecture.h"
#include "plimsoll/job/job.h"
#include "plimsoll/models/block.h"
#include "plimsoll/models/layers.h"
#include "plimsoll/nn/hooks/hooked.h"
#include "plimsoll/nn/modules.h"

/// Language models built from an architecture. Mirrors examples/language_model.py statement by statement, so that
/// tensors are allocated and freed at the same points.
namespace plimsoll::models {

struct LanguageModelOptions {
  std::int64_t length = 0;  ///< The longest sequence of an input.
  job::Norm norm = job::Norm::kComposite;
  job::Checkpoint checkpoint = {};
  bool loss_fp32 = true;  ///< Casts logits to fp32.
};

/// Tokens in, logits out.
class LanguageModelImpl : public torch::nn::Module {
 public:
  LanguageModelImpl(const architecture::Architecture& architecture, const LanguageModelOptions& options);

  at::Tensor forward(at::Tensor tokens);

  /// Initialises parameters and the rotary table, without temporaries on the device.
  void init_weights();
  /// The two parts of init_weights, for callers that need no values. Copies the result of `table` to the rotary table,
  /// if the model has one.
  void copy_turns(const std::function<at::Tensor(at::IntArrayRef sizes)>& table);
  void init_parameters();

  /// For a model with parameters that stay on the CPU.
  void move_buffers(at::Device device);

  /// Each once, as Python lists them: C++ lists a tied parameter twice.
  std::vector<at::Tensor> distinct_parameters() const;

  /// In order; a checkpointed block is in its wrapper.
  const std::vector<std::shared_ptr<torch::nn::Module>>& blocks() const { return blocks_; }

 private:
  void add_block(const architecture::Architecture& architecture, std::int64_t index,
                 const LanguageModelOptions& options);

  double rope_theta_;
  std::int64_t head_dim_;
  bool loss_fp32_;
  nn::Embedding embedding_{nullptr}, positions_{nullptr};
  torch::nn::ModuleList layers_{nullptr};
  std::vector<std::shared_ptr<torch::nn::Module>> blocks_;
  std::vector<RunBlock> run_;
  nn::LayerNorm layer_norm_{nullptr};  ///< Null for models with an RMS norm.
  RMSNorm rms_norm_{nullptr};
  Head output_{nullptr};
  at::Tensor turns_;
};
TORCH_MODULE_IMPL(LanguageModel, nn::Hooked<LanguageModelImpl>);

}  // namespace plimsoll::models
