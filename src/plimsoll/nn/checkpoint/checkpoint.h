#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>

#include <functional>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "plimsoll/nn/checkpoint/frame.h"
#include "plimsoll/nn/checkpoint/options.h"
#include "plimsoll/nn/tensor_tree.h"

/// Activation checkpointing: a function's saved tensors are not kept, but recomputed when backward first needs one. The
/// semantics are those of torch.utils.checkpoint with use_reentrant=False, including the points where memory is
/// allocated and freed:
///
///     auto y = checkpoint(block, x);
///     auto y = checkpoint_with({.early_stop = false}, [&](const at::Tensor& x) { return block(x); }, x);
///
/// Checkpoints nest. A retained graph is recomputed in each backward pass. The function runs again on an autograd
/// thread, with the random numbers, autocast state and device scope of its first run. It must do the same again.
namespace plimsoll::nn {

/// Whether this thread is recomputing a checkpointed function.
inline bool recomputing() noexcept { return detail::RecomputationScope::under_way(); }

namespace detail {

// How an argument is kept for recomputation: tensors as autograd keeps them, other types as a copy.
template <class T>
class KeptArgument {
 public:
  KeptArgument(CheckpointFrame&, const T& value) : value_(value) {}
  const T& get(const std::vector<at::Tensor>&) const { return value_; }

 private:
  T value_;
};

template <std::derived_from<at::Tensor> T>
class KeptArgument<T> {
 public:
  KeptArgument(CheckpointFrame& frame, const at::Tensor& value) : index_(frame.save_input(value)) {}
  const at::Tensor& get(const std::vector<at::Tensor>& inputs) const { return inputs[index_]; }

 private:
  std::size_t index_;
};

template <>
class KeptArgument<std::optional<at::Tensor>> {
 public:
  KeptArgument(CheckpointFrame& frame, const std::optional<at::Tensor>& value) {
    if (value) index_ = frame.save_input(*value);
  }
  std::optional<at::Tensor> get(const std::vector<at::Tensor>& inputs) const {
    return index_ ? std::optional(inputs[*index_]) : std::nullopt;
  }

 private:
  std::optional<std::size_t> index_;
};

}  // namespace detail

/// Runs the function on the arguments and returns its result. The function and the arguments that are not tensors are
/// copied, and kept until the graph is dropped. Without gradients (NoGradGuard) it is a plain call.
///
/// REQUIRES: the function takes its arguments by value or constant reference.
template <class Function, class... Arguments>
auto checkpoint_with(const CheckpointOptions& options, Function&& function, Arguments&&... arguments) {
  std::vector<at::Tensor> tensors;
  const auto note = [&](at::Tensor& tensor) { tensors.push_back(tensor); };
  (visit_tensors(const_cast<std::remove_cvref_t<Arguments>&>(arguments), note), ...);
  const auto frame = std::make_shared<detail::CheckpointFrame>(options, tensors);
  tensors.clear();
  if (!at::GradMode::is_enabled()) return std::invoke(function, std::as_const(arguments)...);

  frame->set_recompute([again = std::decay_t<Function>(function),
                        kept = std::tuple(detail::KeptArgument<std::remove_cvref_t<Arguments>>(*frame, arguments)...)](
                           const std::vector<at::Tensor>& inputs) mutable {
    std::apply([&](const auto&... argument) { static_cast<void>(std::invoke(again, argument.get(inputs)...)); }, kept);
  });
  const detail::CheckpointFrame::Forward forward(frame);
  return std::invoke(function, std::as_const(arguments)...);
}

template <class Function, class... Arguments>
auto checkpoint(Function&& function, Arguments&&... arguments) {
  return checkpoint_with(CheckpointOptions(), std::forward<Function>(function), std::forward<Arguments>(arguments)...);
}

}  // namespace plimsoll::nn
