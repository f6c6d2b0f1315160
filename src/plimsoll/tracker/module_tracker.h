#pragma once

#include <torch/nn/module.h>

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "plimsoll/nn/hooks/hook_handle.h"
#include "plimsoll/nn/hooks/hooks.h"
#include "plimsoll/nn/hooks/module_life.h"

namespace plimsoll {

using Gradients = std::vector<at::Tensor>;

/// Called around a module's forward and backward. Markers only: they are not to change what they see. In backward the
/// module may be gone, and is then null.
struct ModuleHooks {
  std::function<void(torch::nn::Module&, nn::Tensors& arguments)> pre_forward = nullptr;
  std::function<void(torch::nn::Module&, nn::Tensors& arguments, nn::Tensors& results)> post_forward = nullptr;
  /// With the first gradient of its results that is there.
  std::function<void(torch::nn::Module*, const std::string& fqn, const Gradients&)> pre_backward = nullptr;
  /// With those of its arguments, undefined for those that the pass did not reach. None where the module's backward
  /// ends with the whole pass, because no argument needs a gradient.
  std::function<void(torch::nn::Module*, const std::string& fqn, const Gradients&)> post_backward = nullptr;
};

using nn::is_gone;

/// Knows which modules are running, forward or backward; the counterpart of torch's ModTracker.
///
/// Sees every hooked module (nn::Hooked) that runs between enter() and exit(), on whatever thread. A module's name is
/// its path from the first module of its tree that ran, which goes by its class: "Transformer.layers.0". Thread-safe.
class ModuleTracker {
 public:
  ModuleTracker();
  ~ModuleTracker();
  ModuleTracker(const ModuleTracker&) = delete;
  ModuleTracker& operator=(const ModuleTracker&) = delete;

  /// Throws where there are user hooks already: clear_user_hooks first.
  void register_user_hooks(ModuleHooks hooks);
  void clear_user_hooks();
  /// Called when a backward pass that reached modules is over, also by an exception, with autograd's number of it. Must
  /// not throw.
  void on_pass_end(std::function<void(int pass)> hook);

  /// From now on modules have names of their own, where torch's ModTracker gives several the same: of the outermost
  /// modules of a class that live and have parameters, the second is "Transformer#2", and a module that can be reached
  /// in several ways goes by the first, as named_modules() has it.
  void name_apart();

  /// Throws where it is entered already.
  void enter();
  void exit();

  /// The names of the modules that are running, and always "Global".
  std::set<std::string> parents() const;
  /// Whether this thread runs a backward pass.
  static bool is_bw();
  /// The name of a module that has run, or whose parent has.
  std::optional<std::string> known_fqn(const torch::nn::Module& module) const;
  /// The same, giving the module a name if it has none yet.
  std::string assign_name(torch::nn::Module& module);
  /// Whether the module whose forward begins or ends now is within no other's.
  bool outermost() const;

  struct State;

 private:
  std::shared_ptr<State> state_;  ///< Shared with the hooks on tensors, which may outlive the tracker.
  nn::HookHandle pre_handle_, post_handle_;
  bool entered_ = false;
};

}  // namespace plimsoll
