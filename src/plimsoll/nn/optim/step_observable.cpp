#include "plimsoll/nn/optim/step_observable.h"

#include <c10/util/Exception.h>

#include <exception>
#include <utility>

namespace plimsoll::nn {
namespace {

using StepHooks = HookList<StepHook>;
using StateHooks = HookList<StateHook>;

struct GlobalHooks {
  const std::shared_ptr<StepHooks> before = std::make_shared<StepHooks>();
  const std::shared_ptr<StepHooks> after = std::make_shared<StepHooks>();
  const std::shared_ptr<StateHooks> state = std::make_shared<StateHooks>();
};

// Never destroyed: an optimizer with static storage may step, or a handle be removed, after main.
const GlobalHooks& global_hooks() {
  static const auto& hooks = *new GlobalHooks;
  return hooks;
}

/// The post-hooks of one step: each runs once, the always-called ones also after an exception.
class PostHooks {
 public:
  PostHooks(StepObservable& optimizer, const StepHooks& hooks) : optimizer_(optimizer), hooks_(hooks.snapshot()) {}

  void run() {
    if (!hooks_) return;
    while (done_ < hooks_->size()) (*hooks_)[done_++].function(optimizer_);
  }

  void run_always_called() noexcept {
    if (!hooks_) return;
    while (done_ < hooks_->size()) {
      const auto& hook = (*hooks_)[done_++];
      if (hook.always_call) run_quietly(hook.function);
    }
  }

 private:
  void run_quietly(const StepHook& hook) noexcept {
    try {
      hook(optimizer_);
    } catch (const std::exception& error) {
      TORCH_WARN("a step post-hook threw while the step of ", optimizer_.optimizer_name(),
                 " was failing; the step's own error is thrown. The hook's error: ", error.what());
    } catch (...) {
      TORCH_WARN("a step post-hook threw while the step of ", optimizer_.optimizer_name(),
                 " was failing; the step's own error is thrown.");
    }
  }

  StepObservable& optimizer_;
  const StepHooks::Snapshot hooks_;
  std::size_t done_ = 0;
};

void run_all(StepObservable& optimizer, const StepHooks& hooks) {
  const auto entries = hooks.snapshot();
  if (!entries) return;
  for (const auto& entry : *entries) entry.function(optimizer);
}

}  // namespace

StepObservable::~StepObservable() = default;

HookHandle StepObservable::register_step_pre_hook(StepHook hook) {
  return before_->add(std::move(hook), /*prepend=*/false, /*always_call=*/false);
}

HookHandle StepObservable::register_step_post_hook(StepHook hook, StepPostHookOptions options) {
  return after_->add(std::move(hook), /*prepend=*/false, options.always_call);
}

void StepObservable::observe_step(const std::function<void()>& step) {
  const GlobalHooks& of_all = global_hooks();
  if (before_->empty() && after_->empty() && of_all.before->empty() && of_all.after->empty()) {
    step();
    return;
  }
  PostHooks own(*this, *after_);
  PostHooks global(*this, *of_all.after);
  try {
    run_all(*this, *of_all.before);
    run_all(*this, *before_);
    step();
    own.run();
    global.run();
  } catch (...) {
    own.run_always_called();
    global.run_always_called();
    throw;
  }
}

void StepObservable::report_state(const at::Tensor& parameter, std::string_view name, const at::Tensor& state) {
  const auto entries = global_hooks().state->snapshot();
  if (!entries) return;
  for (const auto& entry : *entries) entry.function(*this, parameter, name, state);
}

bool StepObservable::has_state_hooks() noexcept { return !global_hooks().state->empty(); }

void foreign_step_begins(StepObservable& optimizer) { run_all(optimizer, *global_hooks().before); }
void foreign_step_over(StepObservable& optimizer) { run_all(optimizer, *global_hooks().after); }

HookHandle register_global_step_pre_hook(StepHook hook) {
  return global_hooks().before->add(std::move(hook), /*prepend=*/false, /*always_call=*/false);
}

HookHandle register_global_step_post_hook(StepHook hook, StepPostHookOptions options) {
  return global_hooks().after->add(std::move(hook), /*prepend=*/false, options.always_call);
}

HookHandle register_global_state_hook(StateHook hook) {
  return global_hooks().state->add(std::move(hook), /*prepend=*/false, /*always_call=*/false);
}

}  // namespace plimsoll::nn
