#include "plimsoll/fsdp/fsdp_state.h"

#include <ATen/Functions.h>
#include <ATen/record_function.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "plimsoll/fsdp/runtime_observer.h"
#include "plimsoll/nn/hooks/autograd_hooks.h"
#include "plimsoll/nn/hooks/module_life.h"

namespace plimsoll::fsdp {
namespace {

void cast_floating_point(nn::Tensors& tensors, at::ScalarType dtype) {
  for (at::Tensor& tensor : tensors) {
    if (tensor.is_floating_point() && tensor.scalar_type() != dtype) tensor = tensor.to(dtype);
  }
}

}  // namespace

FSDPState::FSDPState(std::vector<torch::nn::Module*> modules, at::Device device, MixedPrecisionPolicy mp_policy,
                     bool an_auto_reshard_after_forward)
    : auto_reshard_after_forward(an_auto_reshard_after_forward),
      modules_(std::move(modules)),
      device_(device),
      mp_policy_(mp_policy) {
  for (auto* module : modules_) owners_of_modules_.push_back(module->weak_from_this());
}

std::vector<torch::nn::Module*> FSDPState::living_modules() const {
  std::vector<torch::nn::Module*> living;
  for (std::size_t i = 0; i < modules_.size(); ++i) {
    if (!nn::is_gone(owners_of_modules_[i])) living.push_back(modules_[i]);
  }
  return living;
}

std::shared_ptr<FSDPState> FSDPState::of(const torch::nn::Module& module) {
  const auto* hooks = dynamic_cast<const nn::Hookable*>(&module);
  return hooks == nullptr ? nullptr : hooks->attachment<FSDPState>();
}

std::string FSDPState::name() const {
  if (!fsdp_param_groups.empty() && !fsdp_param_groups[0]->module_fqn().empty())
    return fsdp_param_groups[0]->module_fqn();
  std::string names;
  for (const auto* module : modules_) names += (names.empty() ? "" : ", ") + nn::class_name(*module);
  return names;
}

void FSDPState::attach() {
  for (torch::nn::Module* module : modules_) {
    nn::require_hooks(*module).attach(shared_from_this());
    register_hooks(*module);
  }
}

// Mirrors FSDPState.init and _register_group_forward_hooks (torch 2.13).
void FSDPState::register_hooks(torch::nn::Module& own) {
  nn::Hookable& hooks = nn::require_hooks(own);
  // The module owns its hooks, and the hooks own the state.
  const std::shared_ptr<FSDPState> state = shared_from_this();
  const bool grouped = modules_.size() > 1;
  hooks.register_forward_pre_hook(
      [state, grouped](torch::nn::Module& module, nn::Tensors& arguments) {
        state->check_is_own(module);
        auto& to_run = state->modules_to_run_forward_;
        if (grouped && to_run.empty()) to_run.insert(state->modules_.begin(), state->modules_.end());
        state->pre_forward(arguments);
      },
      {.prepend = true});
  hooks.register_forward_hook(
      [state, grouped](torch::nn::Module& module, nn::Tensors&, nn::Tensors& results) {
        if (grouped) {
          // The module that completes the group ends its forward; the others only cast their outputs.
          auto& to_run = state->modules_to_run_forward_;
          if (to_run.erase(&module) == 0 || !to_run.empty()) {
            state->cast_output_dtype(results);
            return;
          }
        }
        state->post_forward(results);
      },
      {.prepend = false, .always_call = grouped});
}

void FSDPState::check_is_own(const torch::nn::Module& module) const {
  TORCH_CHECK(std::find(modules_.begin(), modules_.end(), &module) != modules_.end(), "This ", nn::class_name(module),
              " is a copy of a module that fully_shard was applied to: FSDP does not gather its parameters. "
              "Copy the module before fully_shard, or load its state into a new one.");
}

// --- Forward -------------------------------------------------------------------------------------------------------

void FSDPState::root_pre_forward(nn::Tensors& arguments) {
  if (state_ctx->iter_forward_root != nullptr) return;
  state_ctx->iter_forward_root = this;
  RECORD_USER_SCOPE("FSDP::root_pre_forward");
  // The all-gather must read the shards after the optimizer's step.
  const Event event = std::exchange(state_ctx->post_optim_event, nullptr);
  TORCH_CHECK_VALUE(!event || device_.is_cpu() || event->was_marked_for_recording(),
                    "The event given to set_post_optim_event was never recorded, so the forward would not wait. Record "
                    "it on the optimizer's stream, after the step.");
  if (!event) {
    const Stream current = Stream::current(device_);
    comm_ctx->all_gather_copy_in_stream.wait_stream(current);
    comm_ctx->all_gather_stream.wait_stream(current);
  } else {
    comm_ctx->all_gather_streams_wait(event);
  }
  if (device_.is_cpu()) return;
  inputs_to_device(arguments);
}

void FSDPState::inputs_to_device(nn::Tensors& arguments) const {
  RECORD_USER_SCOPE("FSDP::inputs_to_device");
  for (at::Tensor& argument : arguments) {
    if (argument.device() != device_) argument = argument.to(device_);
  }
}

void FSDPState::pre_forward(nn::Tensors& arguments) {
  notify(Stage::kBeforePreForward, *this);
  gather_for_forward(arguments);
  notify(Stage::kAfterPreForward, *this);
}

void FSDPState::gather_for_forward(nn::Tensors& arguments) {
  // A checkpoint recomputes forward: pre-backward has gathered the parameters, unless an earlier backward freed them.
  if (training_state_ == TrainingState::kPreBackward) {
    for (const auto& group : fsdp_param_groups) {
      if (group->is_unsharded()) continue;
      group->unshard();
      group->wait_for_unshard();
    }
    cast_forward_inputs(arguments);
    return;
  }
  lazy_init();
  const bool first_in_pass = training_state_ != TrainingState::kForward;
  training_state_ = TrainingState::kForward;
  if (first_in_pass) root_pre_forward(arguments);
  cast_forward_inputs(arguments);
  for (const auto& group : fsdp_param_groups) group->pre_forward(arguments);
  if (!first_in_pass) return;
  for (const auto& target : states_to_forward_prefetch) {
    const auto state = target.lock();
    if (!state) continue;
    for (const auto& group : state->fsdp_param_groups) {
      FSDPParamGroup::prefetch_unshard(*group, FSDPParamGroup::Pass::kForward);
    }
  }
}

void FSDPState::post_forward(nn::Tensors& results) {
  notify(Stage::kBeforePostForward, *this);
  free_after_forward(results);
  notify(Stage::kAfterPostForward, *this);
}

void FSDPState::free_after_forward(nn::Tensors& results) {
  if (training_state_ == TrainingState::kPreBackward) {
    cast_output_dtype(results);
    return;
  }
  for (const auto& group : fsdp_param_groups) group->post_forward();
  register_pre_backward_hook(results);
  training_state_ = TrainingState::kIdle;
  std::optional<AllGatherState> last;  // Freed on return, see [Note: Overlapping copy-in and all-gather].
  if (state_ctx->iter_forward_root == this) {
    force_complete_incomplete_states(results);
    if (comm_ctx->all_gather_state) {
      comm_ctx->all_gather_streams_wait(comm_ctx->all_gather_state->event);
      last = std::exchange(comm_ctx->all_gather_state, std::nullopt);
    }
    state_ctx->iter_forward_root = nullptr;
  }
  cast_output_dtype(results);
}

// If the model's forward ran only some modules of a group (for example, the loss calls the head later, in chunks), the
// group's forward ends with the root's.
void FSDPState::force_complete_incomplete_states(nn::Tensors& results) {
  const auto states = all_states();
  for (auto state = states.rbegin(); state != states.rend(); ++state) {
    FSDPState& incomplete = **state;
    if (&incomplete == this || incomplete.modules_to_run_forward_.empty()) continue;
    notify(Stage::kBeforePostForward, incomplete);
    for (const auto& group : incomplete.fsdp_param_groups) group->post_forward();
    incomplete.register_pre_backward_hook(results);
    incomplete.training_state_ = TrainingState::kIdle;
    incomplete.cast_output_dtype(results);
    incomplete.modules_to_run_forward_.clear();
    notify(Stage::kAfterPostForward, incomplete);
  }
}

void FSDPState::cast_forward_inputs(nn::Tensors& arguments) const {
  if (!mp_policy_.cast_forward_inputs || !mp_policy_.param_dtype) return;
  RECORD_USER_SCOPE("FSDP::cast_forward_inputs");
  cast_floating_point(arguments, *mp_policy_.param_dtype);
}

void FSDPState::cast_output_dtype(nn::Tensors& results) const {
  if (!mp_policy_.output_dtype) return;
  RECORD_USER_SCOPE("FSDP::cast_forward_outputs");
  cast_floating_point(results, *mp_policy_.output_dtype);
}

// --- Backward ------------------------------------------------------------------------------------------------------

void FSDPState::register_pre_backward_hook(nn::Tensors& results) {
  if (!at::GradMode::is_enabled()) return;
  for (const at::Tensor& result : results) {
    if (!result.requires_grad()) continue;
    if (result.is_view()) {
      TORCH_WARN_ONCE(
          "The FSDP module ", name(),
          " returned a view. An operator that writes into it would drop FSDP's hook, and backward would find "
          "freed parameters: use operators that return new tensors, or clone() the output first.");
    }
    result.register_hook([state = shared_from_this()](const at::Tensor&) { state->pre_backward(); });
  }
}

void FSDPState::pre_backward() {
  const std::lock_guard lock(comm_ctx->mutex);
  training_state_ = TrainingState::kPreBackward;
  register_root_post_backward_final_callback();
  const bool default_prefetch = states_to_backward_prefetch.empty();
  for (const auto& group : fsdp_param_groups) group->pre_backward(default_prefetch);
  for (const auto& target : states_to_backward_prefetch) {
    const auto state = target.lock();
    if (!state) continue;
    for (auto group = state->fsdp_param_groups.rbegin(); group != state->fsdp_param_groups.rend(); ++group) {
      FSDPParamGroup::prefetch_unshard(**group, FSDPParamGroup::Pass::kBackward);
    }
  }
}

void FSDPState::register_root_post_backward_final_callback() {
  if (std::exchange(state_ctx->post_backward_final_callback_queued, true)) return;
  nn::queue_callback([state = shared_from_this()] { state->root_post_backward_final_callback(); });
}

// Mirrors FSDPState._root_post_backward_final_callback (torch 2.13).
void FSDPState::root_post_backward_final_callback() {
  const std::lock_guard lock(comm_ctx->mutex);
  RECORD_USER_SCOPE("FSDP::root_post_backward_callback");
  state_ctx->iter_forward_root = nullptr;
  for (const auto& state : all_states()) {
    state->modules_to_run_forward_.clear();
    for (auto group = state->fsdp_param_groups.rbegin(); group != state->fsdp_param_groups.rend(); ++group) {
      // If the inputs of its forward required no gradient, autograd did not run its post-backward.
      if ((*group)->training_state != TrainingState::kPostBackward) (*group)->post_backward();
      (*group)->training_state = TrainingState::kIdle;
    }
    state->training_state_ = TrainingState::kIdle;
    if (!state_ctx->is_last_backward) continue;
    for (const auto& group : state->fsdp_param_groups) group->finalize_backward();
  }
  if (state_ctx->is_last_backward) {
    comm_ctx->post_forward_order.clear();
    for (const auto& kept : comm_ctx->reduce_scatter_states) Stream::current(device_).wait_event(kept.event);
    comm_ctx->reduce_scatter_states.clear();
  }
  state_ctx->post_backward_final_callback_queued = false;
}

void FSDPState::reset_iter_state() {
  TORCH_CHECK(is_root_ != false, "reset_iter_state is for the root of the FSDP modules; ", name(), " is not the root.");
  const Stream current = Stream::current(device_);
  if (comm_ctx->all_gather_state) current.wait_event(comm_ctx->all_gather_state->event);
  comm_ctx->all_gather_state.reset();
  for (const auto& kept : comm_ctx->reduce_scatter_states) current.wait_event(kept.event);
  comm_ctx->reduce_scatter_states.clear();
  for (const auto& [stream, event] : comm_ctx->last_post_reduce_events) current.wait_event(event);
  comm_ctx->last_post_reduce_events.clear();
  comm_ctx->post_forward_order.clear();
  for (const auto& state : all_states()) {
    state->modules_to_run_forward_.clear();
    state->training_state_ = TrainingState::kIdle;
    for (const auto& group : state->fsdp_param_groups) group->reset_iter_state();
  }
  state_ctx->iter_forward_root = nullptr;
  state_ctx->post_backward_final_callback_queued = false;
}

}  // namespace plimsoll::fsdp
