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
#include "plimsoll/nn/checkpoint/checkpoint_environment.h"
#include "plimsoll/nn/checkpoint/checkpoint_options.h"
#include "plimsoll/nn/hooks/saved_tensor_hooks.h"

namespace plimsoll::nn::detail {

/// While it lives, this thread recomputes what a checkpoint did not keep.
class RecomputationScope : public ThreadScope<RecomputationScope> {};

/// One checkpointed call: what is needed to run it again, and what the runs made. Mirrors _CheckpointFrame and its
/// hooks (torch/utils/checkpoint.py, torch 2.13).
///
/// In the first run each tensor that autograd would save leaves a Holder in its place, known here by its number and
/// held by autograd alone. Recomputation, in the first backward pass that asks for any of them, puts the tensors into
/// those holders that are still alive; asking a holder takes its tensor out. So what is recomputed lives until backward
/// has used it, and what nobody will use is dropped at once.
///
/// Safe to use from several of autograd's threads.
class CheckpointFrame : public std::enable_shared_from_this<CheckpointFrame> {
 public:
  /// A tensor of the first run, in each backward pass that has recomputed it; undefined once taken.
  struct Holder {
    std::map<std::int64_t, at::Tensor> recomputed;
  };

  /// The arguments' tensors say which random number generators matter.
  CheckpointFrame(const CheckpointOptions& options, const std::vector<at::Tensor>& arguments);

  /// Keeps an argument, as autograd keeps a tensor: by whatever hooks are in force. Returns its place among the inputs.
  std::size_t save_input(const at::Tensor& tensor);

  void set_recompute(std::function<void(const std::vector<at::Tensor>& inputs)> recompute) {
    recompute_ = std::move(recompute);
  }

  /// The first run: alive while the function runs.
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

  /// A tensor is saved in the first run.
  std::shared_ptr<Holder> hold(const at::Tensor& tensor);

  /// A tensor is needed by backward.
  at::Tensor take(Holder& holder);

  /// A tensor is saved in recomputation, for the given backward pass.
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

  std::recursive_mutex mutex_;  // A function that itself calls backward comes back here.
  std::vector<torch::autograd::SavedVariable> inputs_;
  std::vector<std::weak_ptr<Holder>> holders_;
  std::vector<Metadata> metadata_;  // One for each holder where determinism is checked.
  std::map<std::int64_t, Pass> passes_;
  bool forward_completed_ = false;
  bool ignore_saved_mismatch_ = false;
};

}  // namespace plimsoll::nn::detail
