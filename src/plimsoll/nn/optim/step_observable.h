#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/thread_scope.h"
#include "plimsoll/nn/hooks/hook_list.h"

/// The view of an optimizer of any library from outside, and the hooks around its step.
///
/// A step runs, in this order: global pre-hooks, the optimizer's pre-hooks, the closure and the update (during which
/// state hooks report each new state tensor), the optimizer's post-hooks, global post-hooks. Hooks run on the thread
/// that steps, with the caller's gradient mode. Without hooks, a step costs a few relaxed loads more.
namespace plimsoll::nn {

class StepObservable;

using StepHook = std::function<void(StepObservable&)>;
using StateVisitor = std::function<void(const at::Tensor& parameter, std::string_view name, const at::Tensor& state)>;
using StateHook =
    std::function<void(StepObservable&, const at::Tensor& parameter, std::string_view name, const at::Tensor& state)>;

struct StepPostHookOptions {
  /// Runs also if a pre-hook, the closure, the update or a post-hook throws. The exception goes on to the caller; an
  /// exception of the hook itself becomes a warning.
  bool always_call = false;
};

/// The base of nn::Optimizer and of HookedOptimizer<torch::optim::…>.
///
/// Hooks may be added and removed at any time, also inside a hook: the change takes effect from the next step.
class StepObservable {
 public:
  StepObservable() = default;
  StepObservable(const StepObservable&) = delete;
  StepObservable& operator=(const StepObservable&) = delete;
  virtual ~StepObservable();

  /// The optimizer's class name: "AdamW".
  virtual std::string optimizer_name() const = 0;

  /// The parameters of all groups, in order.
  virtual std::vector<at::Tensor> parameters() const = 0;

  /// Calls `visit` for each existing state tensor, by parameter, then in order of creation. The names are those of
  /// torch.optim: "step", "exp_avg", "momentum_buffer", …
  virtual void for_each_state(const StateVisitor& visit) const = 0;

  HookHandle register_step_pre_hook(StepHook hook);
  HookHandle register_step_post_hook(StepHook hook, StepPostHookOptions options = {});

 protected:
  /// Runs `step` with the hooks around it.
  void observe_step(const std::function<void()>& step);

  /// Reports a new state tensor to the state hooks.
  void report_state(const at::Tensor& parameter, std::string_view name, const at::Tensor& state);

  static bool has_state_hooks() noexcept;

 private:
  using StepHooks = HookList<StepHook>;

  const std::shared_ptr<StepHooks> before_ = std::make_shared<StepHooks>();
  const std::shared_ptr<StepHooks> after_ = std::make_shared<StepHooks>();
};

/// Runs before each step of every StepObservable of the process.
HookHandle register_global_step_pre_hook(StepHook hook);

/// Runs after each step of every StepObservable of the process.
HookHandle register_global_step_post_hook(StepHook hook, StepPostHookOptions options = {});

/// Runs directly after a state tensor was created: in the step that creates it, or when state is imported.
/// HookedOptimizer cannot see inside torch's step, so it reports at the end of the step, before the post-hooks.
HookHandle register_global_state_hook(StateHook hook);

// --- For optimizers of another front end (Python's), which run their own steps.

/// Runs the global pre-hooks, and the global post-hooks.
void foreign_step_begins(StepObservable& optimizer);
void foreign_step_over(StepObservable& optimizer);

/// While it lives, this thread's allocations are optimizer state until they are reported.
class StateCreation : public ThreadScope<StateCreation> {};

}  // namespace plimsoll::nn
