#include <ATen/Functions.h>
#include <ATen/record_function.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>

#include <mutex>
#include <utility>

#include "plimsoll/fsdp/group/fsdp_param_group.h"
#include "plimsoll/fsdp/group/reduce.h"
#include "plimsoll/fsdp/runtime_observer.h"

// Backward, from the first gradient of a module's outputs to the reduced gradients of its shards.

namespace plimsoll::fsdp {
namespace {

// torch's C++ custom functions do not look into vectors of tensors, and autograd must see one node for all of them.
class RegisterPostBackwardNode final : public torch::autograd::Node {
 public:
  explicit RegisterPostBackwardNode(std::shared_ptr<FSDPParamGroup> group) : group_(std::move(group)) {}

  std::string name() const override { return "RegisterPostBackward"; }

  torch::autograd::variable_list apply(torch::autograd::variable_list&& grads) override {
    for (std::size_t i = 0; i < grads.size(); ++i) {
      if (!grads[i].defined()) grads[i] = input_metadata(i).zeros_like();
    }
    const std::lock_guard lock(group_->comm_ctx->mutex);
    group_->post_backward();
    return std::move(grads);
  }

 private:
  std::shared_ptr<FSDPParamGroup> group_;
};

// Passes the tensors through autograd unchanged, and runs the group's post_backward when all their gradients are
// computed. Counterpart of RegisterPostBackwardFunction. REQUIRES: all require gradients.
std::vector<at::Tensor> register_post_backward(std::shared_ptr<FSDPParamGroup> group,
                                               const std::vector<at::Tensor>& inputs) {
  const c10::intrusive_ptr<torch::autograd::Node> node =
      c10::make_intrusive<RegisterPostBackwardNode>(std::move(group));
  node->set_next_edges(torch::autograd::collect_next_edges(inputs));
  std::vector<at::Tensor> outputs;
  for (const at::Tensor& input : inputs) {
    {
      const at::NoGradGuard no_grad;
      outputs.push_back(input.view_as(input));
    }
    torch::autograd::set_history(outputs.back(), node);
    // Autograd refuses in-place writes to it with its message for outputs of custom functions.
    if (auto* view = torch::autograd::impl::get_view_autograd_meta(outputs.back())) {
      view->set_creation_meta(torch::autograd::CreationMeta::IN_CUSTOM_FUNCTION);
    }
  }
  return outputs;
}

}  // namespace

void FSDPParamGroup::register_post_backward_hook(nn::Tensors& arguments) {
  if (!at::GradMode::is_enabled()) return;
  std::vector<at::Tensor> inputs;
  for (const at::Tensor& argument : arguments) {
    if (argument.requires_grad()) inputs.push_back(argument);
  }
  if (inputs.empty()) return;
  const auto outputs = register_post_backward(shared_from_this(), inputs);
  auto output = outputs.begin();
  for (at::Tensor& argument : arguments) {
    if (argument.requires_grad()) argument = *output++;
  }
}

void FSDPParamGroup::pre_backward(bool default_prefetch) {
  notify(Stage::kBeforePreBackward, *this);
  gather_for_backward(default_prefetch);
  notify(Stage::kAfterPreBackward, *this);
}

void FSDPParamGroup::gather_for_backward(bool default_prefetch) {
  if (training_state == TrainingState::kPreBackward) return;
  RECORD_USER_SCOPE(with_fqn("FSDP::pre_backward"));
  training_state = TrainingState::kPreBackward;
  if (!unshard_in_backward) {
    for (const auto& param : fsdp_params_) param->expect_unsharded_grad();
  }
  unshard(unshard_async_op);  // Does nothing if it was prefetched.
  wait_for_unshard();
  if (default_prefetch) backward_prefetch();
}

void FSDPParamGroup::post_backward() {
  const GroupScope scope(*this);
  if (is_observed()) {
    for (const auto& param : fsdp_params_) notify(MemoryUse::kUnshardedGrad, param->unsharded_grad());
  }
  notify(Stage::kBeforePostBackward, *this);
  free_and_reduce();
  notify(Stage::kAfterPostBackward, *this);
}

// Mirrors FSDPParamGroup.post_backward (torch 2.13).
void FSDPParamGroup::free_and_reduce() {
  // Only some modules of the group ran: then no pre-backward hook was registered, so none ran.
  const bool partial_group = modules_.size() > 1 && training_state == TrainingState::kForward;
  training_state = TrainingState::kPostBackward;
  std::vector<FSDPParam*> with_grad;
  std::vector<at::Tensor> unsharded_grads;
  {
    RECORD_USER_SCOPE(with_fqn("FSDP::post_backward_accumulate"));
    for (const auto& param : fsdp_params_) param->accumulate_unsharded_grad_if_needed();
  }
  {
    RECORD_USER_SCOPE(with_fqn("FSDP::post_backward_reshard"));
    if (!reduce_grads) {
      if (reshard_after_backward) reshard();
      for (const auto& param : fsdp_params_) param->to_accumulated_grad_if_needed();
      show_sharded_grads();
      return;
    }
    unsharded_grads = take_unsharded_grads(with_grad);
    if (reshard_after_backward) reshard();
    show_sharded_grads();
  }
  recycle_reduce_scatter_inputs();
  if (!with_grad.empty()) reduce(with_grad, std::move(unsharded_grads), partial_group);
}

std::vector<at::Tensor> FSDPParamGroup::take_unsharded_grads(std::vector<FSDPParam*>& with_grad) {
  std::vector<at::Tensor> grads;
  for (const auto& param : fsdp_params_) {
    if (!param->has_unsharded_param()) continue;
    at::Tensor grad;
    if (param->unsharded_accumulated_grad.defined()) {
      grad = std::exchange(param->unsharded_accumulated_grad, at::Tensor());
    } else if (param->unsharded_grad().defined()) {
      grad = param->unsharded_grad();
      param->clear_unsharded_grad();
    } else if (reduce_scatter_unused_params && param->param().requires_grad()) {
      const MemoryScope memory(MemoryUse::kUnshardedGrad);
      grad = at::zeros_like(param->unsharded_param());
    } else {
      continue;
    }
    with_grad.push_back(param.get());
    grads.push_back(std::move(grad));
  }
  return grads;
}

// A copy-in may reuse the memory of an earlier input only after that input was reduced. This bounds the number in
// flight.
void FSDPParamGroup::recycle_reduce_scatter_inputs() {
  auto& states = comm_ctx->reduce_scatter_states;
  const auto most = static_cast<std::size_t>(comm_ctx->reduce_scatter_max_input_buffers);
  if (param_group_index != num_param_groups - 1 || states.size() < most) return;
  RECORD_USER_SCOPE(with_fqn("FSDP::post_backward_rs_wait"));
  while (states.size() >= most) {
    Stream::current(device_).wait_event(states.front().event);
    states.erase(states.begin());
  }
}

void FSDPParamGroup::reduce(const std::vector<FSDPParam*>& with_grad, std::vector<at::Tensor> unsharded_grads,
                            bool partial_group) {
  RECORD_USER_SCOPE(with_fqn("FSDP::post_backward_reduce"));
  const bool hook_has_stream = !mesh_info_->is_hsdp() && all_reduce_hook_stream;
  wait_for_post_backward();
  const std::string what = described();
  const ReducePlan plan{.reduce_scatter_group = reduce_scatter_process_group(),
                        .reduce_scatter_stream = comm_ctx->reduce_scatter_stream,
                        .reduce_scatter_comm = *reduce_scatter_comm,
                        .orig_dtype = orig_dtype_,
                        .reduce_dtype = reduce_dtype_,
                        .device = device_,
                        .gradient_divide_factor = gradient_divide_factor,
                        .all_reduce_group = mesh_info_->replicate_process_group,
                        .all_reduce_stream = hook_has_stream ? *all_reduce_hook_stream : comm_ctx->all_reduce_stream,
                        .all_reduce_grads = all_reduce_grads,
                        .all_reduce_hook = all_reduce_hook,
                        .force_sum_reduction_for_comms = force_sum_reduction_for_comms,
                        .what = what};
  ReduceResult result = foreach_reduce(with_grad, unsharded_grads, plan, partial_reduce_output_);
  post_reduce_event_ = result.post_reduce_event;
  partial_reduce_output_ = std::move(result.partial_reduce_output);
  comm_ctx->set_last_post_reduce_event(result.post_reduce_stream, post_reduce_event_);
  comm_ctx->reduce_scatter_states.push_back({std::move(result.reduce_scatter_input), result.reduce_scatter_event});
  // Several backwards of parts of the group can follow each other before the root's end of backward orders them.
  if (partial_group) Stream::current(device_).wait_event(post_reduce_event_);
  if (result.all_reduce_input.defined()) {
    all_reduce_state_ = AllReduceState{std::move(result.all_reduce_input), result.all_reduce_event};
  }
}

void FSDPParamGroup::wait_for_post_backward() {
  const Stream current = Stream::current(device_);
  current.wait_event(post_reduce_event_);
  post_reduce_event_.reset();
  if (all_reduce_state_) current.wait_event(all_reduce_state_->event);
  all_reduce_state_.reset();
}

void FSDPParamGroup::finalize_backward() {
  const Stream current = Stream::current(device_);
  for (const auto& [stream, event] : comm_ctx->last_post_reduce_events) current.wait_event(event);
  comm_ctx->last_post_reduce_events.clear();
  post_reduce_event_.reset();
  all_reduce_state_.reset();
  for (const auto& param : fsdp_params_) {
    if (param->grad_offload_event) param->grad_offload_event->synchronize();
    param->grad_offload_event.reset();
  }
  drop_all_gather();
  post_forward_indices_.clear();
}

void FSDPParamGroup::reset_iter_state() {
  drop_all_gather();
  wait_for_post_backward();
  if (reshard_after_forward_event_) comm_ctx->all_gather_streams_wait(reshard_after_forward_event_);
  reshard_after_forward_event_.reset();
  partial_reduce_output_.reset();
  post_forward_indices_.clear();
  training_state = TrainingState::kIdle;
  to_sharded();
  // Python keeps these, and the next iteration would add to them.
  for (const auto& param : fsdp_params_) {
    param->clear_unsharded_grad();
    param->unsharded_accumulated_grad.reset();
    param->show_sharded_grad();
  }
}

void FSDPParamGroup::for_each_held(const std::function<void(MemoryUse, const at::Tensor&)>& visit) const {
  const auto visit_defined = [&](MemoryUse use, const at::Tensor& tensor) {
    if (tensor.defined()) visit(use, tensor);
  };
  const bool in_backward =
      training_state == TrainingState::kPreBackward || training_state == TrainingState::kPostBackward;
  for (const auto& param : fsdp_params_) {
    visit_defined(MemoryUse::kShardedParam, param->sharded_param_data());
    visit_defined(MemoryUse::kShardedGrad, param->sharded_grad());
    visit_defined(MemoryUse::kUnshardedParam, param->all_gather_output());
    visit_defined(MemoryUse::kPostForwardShard, param->post_forward_data());
    visit_defined(in_backward ? MemoryUse::kUnshardedGrad : MemoryUse::kAccumulatedGrad, param->unsharded_grad());
    visit_defined(MemoryUse::kAccumulatedGrad, param->unsharded_accumulated_grad);
  }
  if (all_gather_result_) visit_defined(MemoryUse::kAllGatherOutput, all_gather_result_->all_gather_output);
  visit_defined(MemoryUse::kPartialGrad, partial_reduce_output_);
  // If it is also a gradient, report it as a gradient.
  if (all_reduce_state_ && all_reduce_state_->all_reduce_input.scalar_type() != orig_dtype_) {
    visit_defined(MemoryUse::kAllReduce, all_reduce_state_->all_reduce_input);
  }
}

// --- Prefetch ------------------------------------------------------------------------------------------------------

void FSDPParamGroup::backward_prefetch() {
  if (post_forward_indices_.empty()) return;  // Cleared by an earlier backward of the same forward.
  const std::size_t index = post_forward_indices_.back();
  post_forward_indices_.pop_back();
  const auto& order = comm_ctx->post_forward_order;
  if (index > order.size()) return;  // Cleared by the backward of another root that shares the context.
  if (num_param_groups == 1) {
    if (index == 0) return;
    if (const auto target = order[index - 1].lock()) prefetch_unshard(*target, Pass::kBackward);
    return;
  }
  // Backward visits the groups of a state last to first. Prefetch at the last but one: the next state's all-gathers
  // overlap with the last reduce-scatter here, and live no longer than that.
  if (param_group_index != 1) return;
  const std::vector<torch::nn::Module*>* target_modules = nullptr;
  for (std::size_t step = 1; step <= index; ++step) {
    const auto target = order[index - step].lock();
    if (!target || target->modules_ == modules_) continue;
    if (target_modules == nullptr) {
      target_modules = &target->modules_;
    } else if (target->modules_ != *target_modules) {
      break;
    }
    prefetch_unshard(*target, Pass::kBackward);
  }
}

void FSDPParamGroup::prefetch_unshard(FSDPParamGroup& target, Pass pass) {
  RECORD_USER_SCOPE((pass == Pass::kForward ? "FSDP::forward_prefetch for " : "FSDP::backward_prefetch for ") +
                    target.module_fqn_);
  const TrainingState before = target.training_state;
  target.training_state = pass == Pass::kForward ? TrainingState::kForward : TrainingState::kPreBackward;
  try {
    target.unshard(target.unshard_async_op);
  } catch (...) {
    target.training_state = before;
    throw;
  }
  target.training_state = before;
}

}  // namespace plimsoll::fsdp
