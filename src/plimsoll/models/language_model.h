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
#include "plimsoll/models/checkpointed.h"
#include "plimsoll/models/head.h"
#include "plimsoll/models/rms_norm.h"
#include "plimsoll/nn/hooks/hooked.h"
#include "plimsoll/nn/modules.h"

/// Language models by their architecture. The model of examples/language_model.py, statement by statement, so that
/// tensors live and die alike.
namespace plimsoll::models {

struct LanguageModelOptions {
  std::int64_t length = 0;  ///< The longest sequence that it will be given.
  job::Norm norm = job::Norm::kComposite;
  job::Checkpoint checkpoint = {};
  bool loss_fp32 = true;  ///< Logits are given in fp32.
};

/// Tokens in, logits out.
class LanguageModelImpl : public torch::nn::Module {
 public:
  LanguageModelImpl(const architecture::Architecture& architecture, const LanguageModelOptions& options);

  at::Tensor forward(at::Tensor tokens);

  /// Gives parameters and the rotary table their first values, without temporaries on the device.
  void init_weights();
  /// Its two parts, for those who need no values: what `table` makes is copied to the rotary table, where there is one.
  void copy_turns(const std::function<at::Tensor(at::IntArrayRef sizes)>& table);
  void init_parameters();

  /// For a model whose parameters stay on the CPU.
  void move_buffers(at::Device device);

  /// Each once, as Python lists them: C++ lists a tied one as often as it is registered.
  std::vector<at::Tensor> distinct_parameters() const;

  /// In order, each as it stands in the model: checkpointed ones in their wrapper.
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
  nn::LayerNorm layer_norm_{nullptr};  ///< One of the two.
  RMSNorm rms_norm_{nullptr};
  Head output_{nullptr};
  at::Tensor turns_;
};
TORCH_MODULE_IMPL(LanguageModel, nn::Hooked<LanguageModelImpl>);

}  // namespace plimsoll::models
