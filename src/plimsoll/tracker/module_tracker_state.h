#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "plimsoll/nn/hooks/autograd_hooks.h"
#include "plimsoll/nn/hooks/hook_list.h"
#include "plimsoll/tracker/module_tracker.h"

namespace plimsoll::inline tracker {

// Mirrors torch.distributed._tools.mod_tracker.ModTracker (torch 2.13), call by call where torch goes by names.
//
// A call of a module is in backward from the first gradient of its outputs to the last gradient of its inputs. Where
// none of its inputs needs a gradient, it ends with the whole backward pass.
struct ModuleTracker::State : std::enable_shared_from_this<State> {
  using WeakModule = std::weak_ptr<torch::nn::Module>;
  /// Names are compared by identity: a module has one name, and to hash or copy it in each hook costs too much.
  using Name = std::shared_ptr<const std::string>;
  using NameCounts = std::unordered_map<Name, int>;

  struct Known {
    WeakModule module;
    Name fqn;
    bool named_children = false;
  };

  /// One call of a module, with its state in backward passes.
  struct Call {
    const torch::nn::Module* address;
    WeakModule module;
    Name name;
    bool in_backward;             ///< Usually a recomputation.
    std::uint64_t number = 0;     ///< In the order of the calls.
    bool ends_with_pass = false;  ///< Its inputs need no gradients.
    bool passes_through = false;  ///< A result is an argument: its backward may end before it begins.
    int begun_in = -1;            ///< The latest pass in which its backward began, and in which it ended.
    int ended_in = -1;
    Gradients ended_with;  ///< Kept from such an end until the beginning, which follows at once.
  };
  using CallPtr = std::shared_ptr<Call>;

  /// A backward pass that has reached a module.
  struct Pass {
    NameCounts running;
    std::vector<CallPtr> ending;
  };

  mutable std::mutex mutex;
  std::unordered_map<const torch::nn::Module*, Known> known;
  bool names_apart = false;
  NameCounts running;
  std::unordered_map<std::thread::id, std::vector<CallPtr>> calls;  ///< With a forward that runs, outermost first.
  std::uint64_t numbered = 0;
  int forwards = 0;  ///< The number of these calls that are not in backward.
  std::unordered_map<int, Pass> passes;
  ModuleHooks user;
  bool has_user_hooks = false;
  std::function<void(int)> pass_ended;
  std::vector<nn::HookHandle> hooks_on_leaves;

  // --- Names. REQUIRES: mutex is not held. To ask a module may run code of another front end, which may wait for a
  // thread that waits for the mutex.
  Name name_of(torch::nn::Module& module);
  /// The class; with a number if another live module has this name. REQUIRES: mutex is held.
  std::string free_name(const std::string& class_name) const;

  // --- Forward, on the thread that calls the module.
  void before_forward(torch::nn::Module& module, nn::Tensors& arguments);
  void after_forward(torch::nn::Module& module, nn::Tensors& arguments, nn::Tensors& results);
  void end_with(const CallPtr& call, const std::vector<at::Tensor>& inputs);
  using BackwardHook = void (State::*)(const CallPtr&, const Gradients&);
  void hook_gradients(const CallPtr& call, const std::vector<at::Tensor>& tensors, nn::MultiGradMode mode,
                      BackwardHook hook);
  void end_call(const Call& call);
  /// REQUIRES: mutex is held.
  void drop_last(std::vector<CallPtr>& open);

  // --- Backward, on autograd's threads.
  void before_backward(const CallPtr& call, const Gradients& gradients);
  void after_backward(const CallPtr& call, const Gradients& gradients);
  void finish_pass(int id);
  void end_pass(int id);

  /// Returns the remains of calls without a backward. Remove the handles without the lock, because this may drop
  /// tensors. REQUIRES: mutex is held.
  std::vector<nn::HookHandle> forget_leftovers();
  /// Forgets all calls that run. REQUIRES: mutex is held.
  void forget_all();
};

}  // namespace plimsoll::inline tracker
