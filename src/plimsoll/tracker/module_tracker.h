#pragma once

#include <torch/nn/module.h>

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "plimsoll/nn/hooks/hook_list.h"
#include "plimsoll/nn/hooks/hooks.h"
#include "plimsoll/nn/hooks/module_life.h"

namespace plimsoll::inline tracker {

using Gradients = std::vector<at::Tensor>;

/// Called around a module's forward and backward. The hooks must not change their arguments. In backward the module is
/// null if it is gone.
struct ModuleHooks {
  std::function<void(torch::nn::Module&, nn::Tensors& arguments)> pre_forward = nullptr;
  std::function<void(torch::nn::Module&, nn::Tensors& arguments, nn::Tensors& results)> post_forward = nullptr;
  /// With the first gradient of the module's results.
  std::function<void(torch::nn::Module*, const std::string& fqn, const Gradients&)> pre_backward = nullptr;
  /// With the gradients of its arguments; undefined for arguments that the pass did not reach. Empty if no argument
  /// needs a gradient: then the module's backward ends with the whole pass.
  std::function<void(torch::nn::Module*, const std::string& fqn, const Gradients&)> post_backward = nullptr;
};

using nn::is_gone;

/// Knows which modules run, forward or backward; the counterpart of torch's ModTracker.
///
/// Sees every hooked module (nn::Hooked) that runs between enter() and exit(), on any thread. A module's name is its
/// path from the first module of its tree that ran, which has the name of its class: "Transformer.layers.0".
/// Thread-safe.
class ModuleTracker {
 public:
  ModuleTracker();
  ~ModuleTracker();
  ModuleTracker(const ModuleTracker&) = delete;
  ModuleTracker& operator=(const ModuleTracker&) = delete;

  /// Throws if there are user hooks already: call clear_user_hooks first.
  void register_user_hooks(ModuleHooks hooks);
  void clear_user_hooks();
  /// Called at the end of a backward pass that reached modules, also after an exception, with autograd's number of the
  /// pass. Must not throw.
  void on_pass_end(std::function<void(int pass)> hook);

  /// Gives each module a name of its own; torch's ModTracker gives several modules the same. The second live root of a
  /// class with parameters is "Transformer#2". A module with several paths has the first, as in named_modules().
  void name_apart();

  /// Throws if it is entered already.
  void enter();
  void exit();

  /// The names of the modules that run now, and always "Global".
  std::set<std::string> parents() const;
  /// Whether this thread runs a backward pass.
  static bool is_bw();
  /// The name of a module that ran, or that has a parent that ran.
  std::optional<std::string> known_fqn(const torch::nn::Module& module) const;
  /// The same; gives the module a name if it has none yet.
  std::string assign_name(torch::nn::Module& module);
  /// Whether the forward that begins or ends now is the outermost.
  bool outermost() const;

  struct State;

 private:
  std::shared_ptr<State> state_;  ///< Shared with the hooks on tensors, which may outlive the tracker.
  nn::HookHandle pre_handle_, post_handle_;
  bool entered_ = false;
};

}  // namespace plimsoll::inline tracker
