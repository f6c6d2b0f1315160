#include "plimsoll/tracker/fsdp/native_fsdp.h"

#include <c10/util/Exception.h>

#include "plimsoll/fsdp/fsdp_state.h"
#include "plimsoll/fsdp/group/fsdp_param_group.h"
#include "plimsoll/tracker/fsdp_mem_tracker.h"

namespace plimsoll::inline tracker {

using fsdp::FSDPParamGroup;
using fsdp::FSDPState;

namespace {

const FSDPParamGroup& group_at(FSDPRuntime::Key key) { return *static_cast<const FSDPParamGroup*>(key); }

}  // namespace

void NativeFSDP::listen(Listener& listener) {
  listener_ = &listener;
  observation_.emplace(*this);
}

void NativeFSDP::stop() { observation_.reset(); }

std::optional<FSDPRuntime::State> NativeFSDP::state_of(torch::nn::Module& module) {
  const auto found = FSDPState::of(module);
  if (!found) return std::nullopt;
  State state{found.get(), found, found->living_modules(), {}};
  for (const auto& group : found->fsdp_param_groups) state.groups.push_back({group.get(), group});
  return state;
}

at::Device NativeFSDP::device_of(torch::nn::Module& root) {
  const auto state = FSDPState::of(root);
  TORCH_CHECK(state, "FSDPMemTracker follows a model under fully_shard, and fully_shard was not applied to this ",
              root.name(), ". Apply it to the root as well, after its submodules; without FSDP use MemTracker.");
  return state->device();
}

void NativeFSDP::for_each_held(Key group, const std::function<void(fsdp::MemoryUse, const at::Tensor&)>& visit) const {
  group_at(group).for_each_held(visit);
}

void NativeFSDP::for_each_unsharded(Key group, const std::function<void(const at::Tensor&)>& visit) const {
  if (!group_at(group).is_unsharded()) return;
  for (const auto& param : group_at(group).fsdp_params()) visit(param->unsharded_param());
}

FSDPRuntime::Key NativeFSDP::group_of(const at::Tensor& parameter) const {
  const auto* param = fsdp::managed(parameter);
  return param == nullptr ? nullptr : &param->group();
}

std::optional<FSDPRuntime::Use> NativeFSDP::current_use(c10::Device device) const noexcept {
  const auto* use = fsdp::MemoryScope::current();
  const auto* group = fsdp::GroupScope::current();
  if (use == nullptr || group == nullptr || device != group->device()) return std::nullopt;
  return Use{*use, group};
}

void NativeFSDP::on_stage(fsdp::Stage stage, const FSDPState& state) noexcept { listener_->state_in(stage, &state); }

void NativeFSDP::on_stage(fsdp::Stage stage, const FSDPParamGroup& group) noexcept {
  listener_->group_in(stage, &group);
}

void NativeFSDP::on_memory(fsdp::MemoryUse use, const at::Tensor& tensor, const FSDPParamGroup* group) noexcept {
  listener_->memory(use, tensor, group);
}

// Here, so that a program that follows another runtime does not link this one.
FSDPMemTracker::FSDPMemTracker(fsdp::ModuleRef root, const MemTrackerOptions& options)
    : FSDPMemTracker(std::make_unique<NativeFSDP>(), options) {
  add_root(root);
}

}  // namespace plimsoll::inline tracker
