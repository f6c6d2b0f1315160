#include "plimsoll/tracker/module_tracker.h"

#include <c10/util/Exception.h>

#include <functional>
#include <utility>

#include "plimsoll/nn/hooks/autograd_hooks.h"
#include "plimsoll/tracker/module_tracker_state.h"

namespace plimsoll::inline tracker {

ModuleTracker::ModuleTracker() : state_(std::make_shared<State>()) {}
ModuleTracker::~ModuleTracker() { exit(); }

void ModuleTracker::register_user_hooks(ModuleHooks hooks) {
  std::lock_guard lock(state_->mutex);
  TORCH_CHECK(!state_->has_user_hooks,
              "this tracker has user hooks already: call clear_user_hooks() before registering others");
  state_->user = std::move(hooks);
  state_->has_user_hooks = true;
}

void ModuleTracker::clear_user_hooks() {
  std::lock_guard lock(state_->mutex);
  state_->user = {};
  state_->has_user_hooks = false;
}

void ModuleTracker::on_pass_end(std::function<void(int pass)> hook) {
  std::lock_guard lock(state_->mutex);
  state_->pass_ended = std::move(hook);
}

void ModuleTracker::enter() {
  TORCH_CHECK(!std::exchange(entered_, true), "this tracker is entered already: exit() comes first");
  {
    std::lock_guard lock(state_->mutex);
    state_->forget_all();
  }
  pre_handle_ = nn::register_global_forward_pre_hook(std::bind_front(&State::before_forward, state_));
  post_handle_ =
      nn::register_global_forward_hook(std::bind_front(&State::after_forward, state_), {.always_call = true});
}

void ModuleTracker::exit() {
  entered_ = false;
  pre_handle_.remove();
  post_handle_.remove();
  std::vector<nn::HookHandle> left_over;
  {
    std::lock_guard lock(state_->mutex);
    state_->forget_all();
    left_over = state_->forget_leftovers();
  }
  for (auto& handle : left_over) handle.remove();
}

std::set<std::string> ModuleTracker::parents() const {
  std::lock_guard lock(state_->mutex);
  std::set<std::string> names{"Global"};
  for (const auto& [name, count] : state_->running) names.insert(*name);
  return names;
}

bool ModuleTracker::is_bw() { return nn::in_backward(); }

std::optional<std::string> ModuleTracker::known_fqn(const torch::nn::Module& module) const {
  std::lock_guard lock(state_->mutex);
  const auto entry = state_->known.find(&module);
  if (entry == state_->known.end() || is_gone(entry->second.module)) return std::nullopt;
  return *entry->second.fqn;
}

void ModuleTracker::name_apart() {
  std::lock_guard lock(state_->mutex);
  state_->names_apart = true;
}

std::string ModuleTracker::assign_name(torch::nn::Module& module) { return *state_->name_of(module); }

bool ModuleTracker::outermost() const {
  std::lock_guard lock(state_->mutex);
  return state_->forwards == 1;
}

}  // namespace plimsoll::inline tracker
