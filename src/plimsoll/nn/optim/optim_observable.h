#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/thread_scope.h"
#include "plimsoll/nn/hooks/hook_handle.h"
#include "plimsoll/nn/hooks/hook_list.h"

/// What can be seen of an optimizer from outside, whoever wrote it, and the hooks around its step.
///
/// A step runs, in this order: global pre-hooks, the optimizer's pre-hooks, the closure and the update (during which
/// state hooks tell of each new state tensor), the optimizer's post-hooks, global post-hooks. Hooks run on the thread
/// that steps, with the caller's gradient mode. Where there are no hooks, a step pays for a few relaxed loads.
namespace plimsoll::nn {

class StepObservable;

using StepHook = std::function<void(StepObservable&)>;
using StateVisitor = std::function<void(const at::Tensor& parameter, std::string_view name, const at::Tensor& state)>;
using StateHook =
    std::function<void(StepObservable&, const at::Tensor& parameter, std::string_view name, const at::Tensor& state)>;

struct StepPostHookOptions {
  /// Also when a pre-hook, the closure, the update or a post-hook throws: what the hook itself throws then becomes a
  /// warning. The exception goes on to the caller.
  bool always_call = false;
};

/// The base of nn::Optimizer and of HookedOptimizer<torch::optim::…>.
///
/// Hooks may be added and removed at any time, also from within a hook: they take part from the next step on.
class StepObservable {
 public:
  StepObservable() = default;
  StepObservable(const StepObservable&) = delete;
  StepObservable& operator=(const StepObservable&) = delete;
  virtual ~StepObservable();

  /// The class of the optimizer, as its users write it: "AdamW".
  virtual std::string optimizer_name() const = 0;

  /// The parameters of all groups, in order.
  virtual std::vector<at::Tensor> parameters() const = 0;

  /// Calls `visit` for each state tensor there is, by parameter and within it in order of creation. The names are those
  /// of torch.optim: "step", "exp_avg", "momentum_buffer", …
  virtual void for_each_state(const StateVisitor& visit) const = 0;

  HookHandle register_step_pre_hook(StepHook hook);
  HookHandle register_step_post_hook(StepHook hook, StepPostHookOptions options = {});

 protected:
  /// Runs `step` with the hooks around it.
  void observe_step(const std::function<void()>& step);

  /// Tells the state hooks of a new state tensor.
  void report_state(const at::Tensor& parameter, std::string_view name, const at::Tensor& state);

  static bool has_state_hooks() noexcept;

 private:
  using StepHooks = HookList<StepHook>;

  const std::shared_ptr<StepHooks> before_ = std::make_shared<StepHooks>();
  const std::shared_ptr<StepHooks> after_ = std::make_shared<StepHooks>();
};

/// Runs before each step of every optimizer of the process that is a StepObservable.
HookHandle register_global_step_pre_hook(StepHook hook);

/// Runs after each step of every optimizer of the process that is a StepObservable.
HookHandle register_global_step_post_hook(StepHook hook, StepPostHookOptions options = {});

/// Runs right after a state tensor came to be: in the step that creates it, or when state is imported. For
/// HookedOptimizer, which cannot look into torch's step, at the end of the step, before the post-hooks.
HookHandle register_global_state_hook(StateHook hook);

// --- For optimizers of another front end (Python's), which step by themselves.

/// Runs the global pre-hooks, and the global post-hooks.
void foreign_step_begins(StepObservable& optimizer);
void foreign_step_over(StepObservable& optimizer);

/// While it lives, what this thread allocates is state of an optimizer, until it is told of.
class StateCreation : public ThreadScope<StateCreation> {};

}  // namespace plimsoll::nn
