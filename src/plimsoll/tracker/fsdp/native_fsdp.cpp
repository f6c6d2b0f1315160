#include <c10/util/Exception.h>

#include <optional>

#include "plimsoll/fsdp/fsdp_state.h"
#include "plimsoll/fsdp/group/fsdp_param_group.h"
#include "plimsoll/fsdp/runtime_observer.h"
#include "plimsoll/tracker/fsdp/fsdp_runtime.h"
#include "plimsoll/tracker/fsdp_mem_tracker.h"

namespace plimsoll::inline tracker {

using fsdp::FSDPParamGroup;
using fsdp::FSDPState;

namespace {

/// The runtime of plimsoll::fsdp, which reports its own work.
class NativeFSDP final : public FSDPRuntime, public fsdp::RuntimeObserver {
 public:
  void listen(Listener& listener) override {
    listener_ = &listener;
    observation_.emplace(*this);
  }

  void stop() override { observation_.reset(); }

  std::optional<State> state_of(torch::nn::Module& module) override {
    const auto found = FSDPState::of(module);
    if (!found) return std::nullopt;
    State state{found.get(), found, found->living_modules(), {}};
    for (const auto& group : found->fsdp_param_groups) state.groups.push_back({group.get(), group});
    return state;
  }

  at::Device device_of(torch::nn::Module& root) override {
    const auto state = FSDPState::of(root);
    TORCH_CHECK(state, "FSDPMemTracker follows a model under fully_shard, and fully_shard was not applied to this ",
                root.name(), ". Apply it to the root as well, after its submodules; without FSDP use MemTracker.");
    return state->device();
  }

  void for_each_held(Key group, const VisitHeld& visit) const override { group_at(group).for_each_held(visit); }

  void for_each_unsharded(Key group, const VisitTensor& visit) const override {
    if (!group_at(group).is_unsharded()) return;
    for (const auto& param : group_at(group).fsdp_params()) visit(param->unsharded_param());
  }

  Key group_of(const at::Tensor& parameter) const override {
    const auto* param = fsdp::managed(parameter);
    return param == nullptr ? nullptr : &param->group();
  }

  std::optional<Use> current_use(c10::Device device) const noexcept override {
    const auto* use = fsdp::MemoryScope::current();
    const auto* group = fsdp::GroupScope::current();
    if (use == nullptr || group == nullptr || device != group->device()) return std::nullopt;
    return Use{*use, group};
  }

 private:
  static const FSDPParamGroup& group_at(Key key) { return *static_cast<const FSDPParamGroup*>(key); }

  void on_stage(fsdp::Stage stage, const FSDPState& state) noexcept override { listener_->state_in(stage, &state); }
  void on_stage(fsdp::Stage stage, const FSDPParamGroup& group) noexcept override {
    listener_->group_in(stage, &group);
  }
  void on_memory(fsdp::MemoryUse use, const at::Tensor& tensor, const FSDPParamGroup* group) noexcept override {
    listener_->memory(use, tensor, group);
  }

  Listener* listener_ = nullptr;
  std::optional<fsdp::RuntimeObservation> observation_;
};

}  // namespace

// Here, so that a program that follows another runtime does not link this one.
FSDPMemTracker::FSDPMemTracker(fsdp::ModuleRef root, const MemTrackerOptions& options)
    : FSDPMemTracker(std::make_unique<NativeFSDP>(), options) {
  add_root(root);
}

}  // namespace plimsoll::inline tracker
