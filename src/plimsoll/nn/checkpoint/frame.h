#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>
#include <c10/util/SmallVector.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "plimsoll/base/thread_scope.h"
#include "plimsoll/nn/checkpoint/environment.h"
#include "plimsoll/nn/checkpoint/options.h"
#include "plimsoll/nn/hooks/saved_tensor_hooks.h"

namespace plimsoll::nn::detail {

/// While it lives, this thread recomputes a checkpoint.
class RecomputationScope : public ThreadScope<RecomputationScope> {};

/// One checkpointed call: the inputs of its recomputation and the recomputed tensors. Mirrors _CheckpointFrame and its
/// hooks (torch/utils/checkpoint.py, torch 2.13).
///
/// In the first run, each tensor that autograd would save is replaced by a Holder; only autograd owns the holder, the
/// frame has its number. The first backward pass that needs one of the tensors recomputes all, and fills the holders
/// that are still alive. Taking a tensor empties its holder. So a recomputed tensor lives until backward has used it,
/// and tensors without a holder are dropped at once.
///
/// Safe to use from several autograd threads.
class CheckpointFrame : public std::enable_shared_from_this<CheckpointFrame> {
 public:
  /// A tensor of the first run, for each backward pass that has recomputed it; undefined after it was taken.
  struct Holder {
    std::map<std::int64_t, at::Tensor> recomputed;
  };

  /// The tensor arguments determine which random number generators are restored.
  CheckpointFrame(const CheckpointOptions& options, const std::vector<at::Tensor>& arguments);

  /// Keeps an argument like a saved tensor, with the active saved-tensor hooks. Returns its index in the inputs.
  std::size_t save_input(const at::Tensor& tensor);

  void set_recompute(std::function<void(const std::vector<at::Tensor>& inputs)> recompute) {
    recompute_ = std::move(recompute);
  }

  /// The scope of the first run.
  class Forward {
   public:
    explicit Forward(std::shared_ptr<CheckpointFrame> frame);
    ~Forward();
    Forward(const Forward&) = delete;
    Forward& operator=(const Forward&) = delete;

   private:
    std::shared_ptr<CheckpointFrame> frame_;
    SavedTensorHooks hooks_;
    std::shared_ptr<void> context_;
    int exceptions_;
  };

  /// Saves a tensor in the first run.
  std::shared_ptr<Holder> hold(const at::Tensor& tensor);

  /// Returns a tensor that backward needs.
  at::Tensor take(Holder& holder);

  /// Saves a tensor in the recomputation for the given backward pass.
  at::Tensor recomputed(std::int64_t pass, const at::Tensor& tensor);

 private:
  struct Metadata {
    explicit Metadata(const at::Tensor& tensor);
    bool operator==(const Metadata&) const = default;
    std::string text() const;

    c10::SmallVector<std::int64_t, 5> shape;
    c10::ScalarType dtype;
    c10::Device device;
  };
  struct Pass {
    bool done = false;
    std::size_t saved = 0;
  };

  void recompute(std::int64_t pass, const std::vector<at::Tensor>& inputs);
  void check_recomputed(std::int64_t pass) const;

  const bool early_stop_;
  const bool determinism_check_;
  CheckpointContexts contexts_;
  const CheckpointEnvironment environment_;
  std::function<void(const std::vector<at::Tensor>& inputs)> recompute_;

  std::recursive_mutex mutex_;  // Recursive: the function may call backward itself.
  std::vector<torch::autograd::SavedVariable> inputs_;
  std::vector<std::weak_ptr<Holder>> holders_;
  std::vector<Metadata> metadata_;  // One for each holder, if determinism is checked.
  std::map<std::int64_t, Pass> passes_;
  bool forward_completed_ = false;
  bool ignore_saved_mismatch_ = false;
};

}  // namespace plimsoll::nn::detail
