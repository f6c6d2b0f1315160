#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/saved_variable_hooks.h>

#include <any>
#include <functional>
#include <memory>
#include <optional>
#include <string>

/// Saved-tensor hooks, as torch.autograd.graph has them in Python.
///
/// torch asks its autograd engine for these hooks, and only Python's engine supports them. A program linked with this
/// library gets, at its start, an engine that does too. If Python's engine is installed it stays, and the first scope
/// throws.
namespace plimsoll::nn {

/// `pack` returns the object that replaces a tensor which autograd saves; `unpack` returns the tensor. `pack` runs on
/// the operator's thread, without gradients; `unpack` runs on an autograd thread when backward needs the tensor.
using PackHook = std::function<std::any(const at::Tensor&)>;
using UnpackHook = std::function<at::Tensor(const std::any&)>;

/// Makes the hooks of one saved tensor, for callers that keep more than a value.
using SavedTensorHookFactory = std::function<std::unique_ptr<torch::autograd::SavedVariableHooks>()>;

/// Activates hooks for the tensors that autograd saves on this thread, and on autograd's threads in a backward pass
/// that this thread calls. Of nested scopes, only the innermost counts. Numbers that torch wrapped as tensors are
/// ignored.
///
/// Throws the message of a DisableSavedTensorHooks, if one is alive.
///
/// REQUIRES: scopes of a thread end in the reverse order of their beginning.
class SavedTensorHooks {
 public:
  SavedTensorHooks(PackHook pack, UnpackHook unpack);
  explicit SavedTensorHooks(SavedTensorHookFactory factory);
  ~SavedTensorHooks();
  SavedTensorHooks(const SavedTensorHooks&) = delete;
  SavedTensorHooks& operator=(const SavedTensorHooks&) = delete;
};

/// While it lives, opening a SavedTensorHooks scope on this thread throws the message. This constructor throws it too
/// if a scope is open. For code that is incompatible with such hooks. Uses torch's own flag, so Python's hooks are
/// disabled too.
class DisableSavedTensorHooks {
 public:
  explicit DisableSavedTensorHooks(const std::string& message);
  ~DisableSavedTensorHooks();
  DisableSavedTensorHooks(const DisableSavedTensorHooks&) = delete;
  DisableSavedTensorHooks& operator=(const DisableSavedTensorHooks&) = delete;

 private:
  std::optional<std::string> outer_;
};

/// Installs the engine with hooks, once. Thread-safe. Throws as require_replaceable_engine does.
void install_saved_tensor_hooks();

/// Throws inside a backward pass, which cannot continue in another engine. Throws unless the engine is torch's C++
/// engine: another one (Python's) has its own hooks, which ours would hide.
void require_replaceable_engine(torch::autograd::Engine& engine);

}  // namespace plimsoll::nn
