#include "plimsoll/fsdp/fsdp_module.h"

#include <map>

#include "plimsoll/fsdp/fsdp_state.h"
#include "plimsoll/fsdp/module_tree.h"
#include "plimsoll/fsdp/param/mesh_info.h"
#include "plimsoll/fsdp/runtime_observer.h"

namespace plimsoll::fsdp {
namespace {

// With several meshes, a custom communication or hook could not tell them apart.
void require_one_group(const FSDPState& state, const char* call) {
  TORCH_CHECK_VALUE(state.fsdp_param_groups.size() <= 1, call, " needs a module with all parameters on one mesh, but ",
                    state.name(), " has ", state.fsdp_param_groups.size(),
                    " groups of parameters on different meshes (by its shard_placement_fn).");
}

}  // namespace

void UnshardHandle::wait() {
  for (const auto& group : std::exchange(groups_, {})) group->wait_for_unshard();
}

FSDPModule::FSDPModule(ModuleRef module) : module_(&*module), state_(FSDPState::of(*module)) {
  TORCH_CHECK_VALUE(state_ != nullptr, "Expected a module that fully_shard was applied to, found a ",
                    nn::class_name(*module_), " without fully_shard.");
}

bool FSDPModule::is_fsdp_module(const torch::nn::Module& module) { return FSDPState::of(module) != nullptr; }

template <class Fn>
void FSDPModule::for_each_group(Recurse recurse, Fn fn) {
  const auto modules = recurse.recurse ? named_modules(*module_) : std::vector<NamedModule>{{"", module_}};
  for (const auto& [name, module] : modules) {
    const auto state = FSDPState::of(*module);
    if (!state) continue;
    for (const auto& group : state->fsdp_param_groups) fn(*state, *group);
  }
}

UnshardHandle FSDPModule::unshard(bool async_op) {
  for (const auto& group : state_->fsdp_param_groups) {
    group->lazy_init();
    notify(Stage::kUnshardByHand, *group);
    group->unshard(async_op);
  }
  UnshardHandle handle(state_->fsdp_param_groups);
  if (!async_op) handle.wait();
  return handle;
}

void FSDPModule::reshard() {
  for (const auto& group : state_->fsdp_param_groups) group->reshard();
}

void FSDPModule::reset_iter_state() { state_->reset_iter_state(); }

void FSDPModule::set_is_last_backward(bool is_last_backward) { state_->state_ctx->is_last_backward = is_last_backward; }

void FSDPModule::set_requires_gradient_sync(bool requires_gradient_sync, Recurse recurse) {
  for_each_group(recurse, [&](FSDPState&, FSDPParamGroup& group) {
    group.reduce_grads = requires_gradient_sync;
    group.all_reduce_grads = requires_gradient_sync;
  });
}

void FSDPModule::set_requires_all_reduce(bool requires_all_reduce, Recurse recurse) {
  for_each_group(recurse, [&](FSDPState&, FSDPParamGroup& group) { group.all_reduce_grads = requires_all_reduce; });
}

void FSDPModule::set_reshard_after_forward(bool reshard_after_forward, Recurse recurse) {
  for_each_group(recurse, [&](FSDPState& state, FSDPParamGroup& group) {
    state.auto_reshard_after_forward = false;
    group.post_forward_mesh_info = post_forward_mesh(reshard_after_forward, group.mesh_info());
  });
}

void FSDPModule::set_reshard_after_backward(bool reshard_after_backward, Recurse recurse) {
  for_each_group(recurse,
                 [&](FSDPState&, FSDPParamGroup& group) { group.reshard_after_backward = reshard_after_backward; });
}

void FSDPModule::set_modules_to_forward_prefetch(const std::vector<FSDPModule>& modules) {
  state_->states_to_forward_prefetch.clear();
  for (const FSDPModule& module : modules) state_->states_to_forward_prefetch.push_back(module.state_);
}

void FSDPModule::set_modules_to_backward_prefetch(const std::vector<FSDPModule>& modules) {
  state_->states_to_backward_prefetch.clear();
  for (const FSDPModule& module : modules) state_->states_to_backward_prefetch.push_back(module.state_);
}

void FSDPModule::set_custom_all_gather(std::shared_ptr<AllGather> comm) {
  require_one_group(*state_, "set_custom_all_gather");
  for (const auto& group : state_->fsdp_param_groups) group->all_gather_comm = comm;
}

void FSDPModule::set_custom_reduce_scatter(std::shared_ptr<ReduceScatter> comm) {
  require_one_group(*state_, "set_custom_reduce_scatter");
  for (const auto& group : state_->fsdp_param_groups) group->reduce_scatter_comm = comm;
}

void FSDPModule::set_all_reduce_hook(std::function<void(at::Tensor)> hook, std::optional<c10::Stream> stream) {
  require_one_group(*state_, "set_all_reduce_hook");
  TORCH_CHECK_VALUE(hook || !stream, "set_all_reduce_hook was given a stream but no hook.");
  for (const auto& group : state_->fsdp_param_groups) {
    TORCH_CHECK_VALUE(!stream || !group->mesh_info()->is_hsdp(),
                      "With HSDP the all-reduce hook runs on the stream of its all-reduce: pass no stream.");
    group->all_reduce_hook = hook;
    if (stream) group->all_reduce_hook_stream = Stream(*stream);
  }
}

void FSDPModule::set_post_optim_event(std::shared_ptr<c10::Event> event) {
  state_->state_ctx->post_optim_event = std::move(event);
}

void FSDPModule::set_gradient_divide_factor(double factor) {
  for (const auto& group : state_->fsdp_param_groups) group->gradient_divide_factor = factor;
}

void FSDPModule::set_force_sum_reduction_for_comms(bool enable) {
  for (const auto& group : state_->fsdp_param_groups) group->force_sum_reduction_for_comms = enable;
}

void FSDPModule::set_reduce_scatter_unused_params(bool reduce_scatter_unused_params, Recurse recurse) {
  for_each_group(recurse, [&](FSDPState&, FSDPParamGroup& group) {
    group.reduce_scatter_unused_params = reduce_scatter_unused_params;
  });
}

void FSDPModule::set_reduce_scatter_max_input_buffers(int max_input_buffers, Recurse recurse) {
  TORCH_CHECK_VALUE(max_input_buffers >= 1, "Expected at least one reduce-scatter input buffer, found ",
                    max_input_buffers, '.');
  for_each_group(
      recurse, [&](FSDPState&, FSDPParamGroup& group) { group.reduce_scatter_max_input_buffers = max_input_buffers; });
}

void FSDPModule::set_separate_reduce_scatter_group(bool enable, Recurse recurse) {
  std::map<std::vector<int>, ProcessGroup> new_groups;
  for_each_group(
      recurse, [&](FSDPState&, FSDPParamGroup& group) { group.set_separate_reduce_scatter_group(enable, new_groups); });
}

void FSDPModule::set_unshard_in_backward(bool unshard_in_backward) {
  for (const auto& group : state_->fsdp_param_groups) group->unshard_in_backward = unshard_in_backward;
}

void FSDPModule::set_unshard_async_op(bool async_op) {
  for_each_group({}, [&](FSDPState&, FSDPParamGroup& group) { group.unshard_async_op = async_op; });
}

void detail::pre_forward(const FSDPModule& module, nn::Tensors& arguments) { module.state()->pre_forward(arguments); }

void detail::post_forward(const FSDPModule& module, nn::Tensors& results) { module.state()->post_forward(results); }

void share_comm_ctx(const std::vector<FSDPModule>& modules) {
  if (modules.empty()) return;
  const auto& comm_ctx = modules[0].state()->comm_ctx;
  for (const FSDPModule& module : modules) {
    module.state()->comm_ctx = comm_ctx;
    for (const auto& group : module.state()->fsdp_param_groups) group->comm_ctx = comm_ctx;
  }
}

}  // namespace plimsoll::fsdp
