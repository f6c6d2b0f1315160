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
/// torch asks its autograd engine for them, and only Python's engine has any. A program that is linked with this has,
/// from its start, one that does too; where Python's is in charge it stays, and the first scope throws.
namespace plimsoll::nn {

/// What takes the place of a tensor that autograd saves, and what gives the tensor back. `pack` runs when autograd
/// saves, without gradients and on the thread that runs the operator; `unpack` when backward needs it, on a thread of
/// autograd's.
using PackHook = std::function<std::any(const at::Tensor&)>;
using UnpackHook = std::function<at::Tensor(const std::any&)>;

/// Makes the hooks of one saved tensor: for those who keep more than a value.
using SavedTensorHookFactory = std::function<std::unique_ptr<torch::autograd::SavedVariableHooks>()>;

/// While it lives, the tensors that autograd saves on this thread, and on autograd's threads in a backward pass that
/// this thread calls, go through the hooks. Of nested scopes the innermost counts, alone. Numbers that torch wrapped as
/// tensors are passed over.
///
/// Throws where a DisableSavedTensorHooks is alive, with its message.
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

/// While it lives, opening a SavedTensorHooks scope on this thread throws the message; so does this constructor where
/// one is open. For code that does not go together with such hooks. torch's own flag, so Python's hooks are disabled
/// too.
class DisableSavedTensorHooks {
 public:
  explicit DisableSavedTensorHooks(const std::string& message);
  ~DisableSavedTensorHooks();
  DisableSavedTensorHooks(const DisableSavedTensorHooks&) = delete;
  DisableSavedTensorHooks& operator=(const DisableSavedTensorHooks&) = delete;

 private:
  std::optional<std::string> outer_;
};

/// Puts the engine with hooks in charge, once; safe to call from several threads. Throws as require_replaceable_engine
/// does.
void install_saved_tensor_hooks();

/// Throws within a backward pass, which would go on in two engines, and unless the engine is torch's own for C++: any
/// other (Python's) has hooks of its own, which ours would hide.
void require_replaceable_engine(torch::autograd::Engine& engine);

}  // namespace plimsoll::nn
