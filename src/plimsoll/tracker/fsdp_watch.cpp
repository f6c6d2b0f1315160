#include "plimsoll/tracker/fsdp_watch.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <set>

#include "plimsoll/fsdp/fsdp_param_group.h"
#include "plimsoll/tracker/fsdp_categories.h"

namespace plimsoll {

using fsdp::FSDPParamGroup;
using fsdp::FSDPState;
using fsdp::MemoryUse;
using fsdp::Stage;

namespace {

at::Device device_of(const torch::nn::Module& root) {
  const auto state = FSDPState::of(root);
  TORCH_CHECK(state, "FSDPMemTracker follows a model under fully_shard, and fully_shard was not applied to this ",
              root.name(), ". Apply it to the root as well, after its submodules; without FSDP use MemTracker.");
  return state->device();
}

/// What torch calls the stage. The end of a recomputation is not the runtime's to tell: it may be broken off before.
std::optional<FSDPModState> snapshot_of_stage(Stage stage, bool recomputing) {
  if (recomputing) {
    return stage == Stage::kAfterPreForward ? std::optional(FSDPModState::kPreForwardAC) : std::nullopt;
  }
  switch (stage) {
    case Stage::kBeforePreForward:
      return FSDPModState::kBeforePreForward;
    case Stage::kAfterPreForward:
      return FSDPModState::kAfterPreForward;
    case Stage::kBeforePostForward:
      return FSDPModState::kBeforePostForward;
    case Stage::kAfterPostForward:
      return FSDPModState::kAfterPostForward;
    case Stage::kBeforePreBackward:
      return FSDPModState::kBeforePreBackward;
    case Stage::kAfterPreBackward:
      return FSDPModState::kAfterPreBackward;
    case Stage::kBeforePostBackward:
      return FSDPModState::kBeforePostBackward;
    case Stage::kAfterPostBackward:
      return FSDPModState::kAfterPostBackward;
    case Stage::kUnshardByHand:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

FSDPWatch::FSDPWatch(torch::nn::Module& root, Books& books, WatchedTensors& tensors, ModuleTracker& modules)
    : root_(root.weak_from_this()),
      root_address_(&root),
      device_(device_of(root)),
      books_(books),
      tensors_(tensors),
      modules_(modules) {
  std::transform(fsdp_categories::kOfUse.begin(), fsdp_categories::kOfUse.end(), categories_.begin(),
                 [&](std::string_view name) { return books_.category(name); });
  state_category_ = books_.category(fsdp_categories::kOptState);
  inputs_category_ = books_.category(fsdp_categories::kInputs);
  follow_all();
  tensors_.leave_to(this, state_category_);
  tensors_.add(root, modules_.fqn(root));
  books_.set_classifier(this);
  observation_.emplace(*this);
}

FSDPWatch::~FSDPWatch() {
  observation_.reset();
  books_.set_classifier(nullptr);
  tensors_.leave_to(nullptr, ledger::categories::kOptstate);
}

// --- What there is -------------------------------------------------------------------------------------------------

void FSDPWatch::look_again() {
  books_.with_ledger([&](const ledger::Ledger& ledger) {
    // The run's peak counts anew from here on. Only the first state's is still asked for.
    if (!first_state_peak_ || first_state_peak_->step != ledger.current_step()) log_.forget_latest();
  });
  follow_all();
}

void FSDPWatch::follow_all() {
  if (is_gone(root_)) return;
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(states_, [](const auto& entry) { return entry.second.state.expired(); });
    std::erase_if(groups_, [](const auto& entry) { return entry.second.group.expired(); });
  }
  const auto root_name = modules_.fqn(*root_address_);  // Names all below it, too.
  books_.with_ledger([&](const ledger::Ledger& ledger) {
    root_name_ = root_name;
    members_.clear();
    records.forget_dead();
    for_each_device(ledger, [&](auto device) { had_state_ |= ledger.balance(device)[state_category_] != 0; });
  });
  follow(*root_address_);
}

void FSDPWatch::before_step() {
  if (is_gone(root_)) return;
  const auto name = modules_.fqn(*root_address_);
  if (books_.with_ledger([&](const ledger::Ledger&) { return root_name_ != name; })) follow_all();
}

void FSDPWatch::follow(torch::nn::Module& module) {
  if (const auto state = FSDPState::of(module)) {
    std::string name;
    std::vector<std::string> members;
    for (auto* member : state->living_modules()) {
      members.push_back(modules_.fqn(*member));
      name += (name.empty() ? "" : ", ") + members.back();
    }
    const auto owner = books_.owner(name);
    books_.with_ledger([&](const ledger::Ledger&) {
      records.follow(state, name);
      if (std::none_of(members_.begin(), members_.end(), [&](const auto& known) { return known.second == owner; })) {
        for (auto& member : members) members_.emplace_back(std::move(member), owner);
      }
    });
    {
      const std::lock_guard lock(mutex_);
      states_[state.get()] = {state, owner};
      for (const auto& group : state->fsdp_param_groups) groups_[group.get()] = {group, state, owner};
    }
    for (const auto& group : state->fsdp_param_groups) {
      group->for_each_held([&](MemoryUse use, const at::Tensor& tensor) { this->name(tensor, use, owner); });
    }
  }
  for (const auto& child : module.children()) follow(*child);
}

void FSDPWatch::name(const at::Tensor& tensor, MemoryUse use, ledger::OwnerId owner) {
  books_.name_tensor(tensor, categories_[static_cast<std::size_t>(use)], owner);
}

std::optional<FSDPWatch::FollowedGroup> FSDPWatch::followed(const FSDPParamGroup* group) const {
  const std::lock_guard lock(mutex_);
  const auto found = groups_.find(group);
  // Where it is gone, another may be at its address.
  if (found == groups_.end() || found->second.group.expired()) return std::nullopt;
  return found->second;
}

ledger::OwnerId FSDPWatch::owner_of(const FSDPParamGroup* group) const {
  const auto entry = followed(group);
  return entry ? entry->owner : ledger::kNoOwner;
}

std::optional<ledger::OwnerId> FSDPWatch::owner_of(const at::Tensor& parameter) const {
  const auto* param = fsdp::managed(parameter);
  if (param == nullptr) return std::nullopt;
  return owner_of(&param->group());
}

std::optional<FSDPWatch::Followed> FSDPWatch::followed(const FSDPState& state) const {
  const std::lock_guard lock(mutex_);
  const auto found = states_.find(&state);
  if (found == states_.end() || found->second.state.expired()) return std::nullopt;
  return found->second;
}

// --- What happens --------------------------------------------------------------------------------------------------

std::optional<AllocationClassifier::Class> FSDPWatch::classify(c10::Device device) const noexcept {
  const auto* use = fsdp::MemoryScope::current();
  const auto* group = fsdp::GroupScope::current();
  if (use == nullptr || group == nullptr || device != group->device()) return std::nullopt;
  return Class{categories_[static_cast<std::size_t>(*use)], owner_of(group)};
}

void FSDPWatch::on_memory(MemoryUse use, const at::Tensor& tensor, const FSDPParamGroup* group) noexcept {
  name(tensor, use, owner_of(group));
}

void FSDPWatch::on_stage(Stage stage, const FSDPState& state) noexcept {
  if (!books_.tracking()) return;
  const auto entry = followed(state);
  if (!entry) return;
  if (stage == Stage::kAfterPreForward) {
    for (const auto& group : state.fsdp_param_groups) describe_unsharded(*group);
  }
  const bool recomputing = ModuleTracker::is_bw();
  if (const auto of = snapshot_of_stage(stage, recomputing)) take_snapshot(state, *of);
  if (!recomputing || stage == Stage::kBeforePreForward) log_stage(entry->owner, stage, recomputing);
}

void FSDPWatch::on_stage(Stage stage, const FSDPParamGroup& group) noexcept {
  if (!books_.tracking()) return;
  const auto entry = followed(&group);
  const auto state = entry ? entry->state.lock() : nullptr;
  if (!state) return;
  if (stage == Stage::kAfterPreBackward) describe_unsharded(group);
  if (const auto of = snapshot_of_stage(stage, /*recomputing=*/false)) take_snapshot(*state, *of);
  log_stage(entry->owner, stage, /*recomputed=*/false);
}

void FSDPWatch::after_recomputed_forward(const torch::nn::Module& module) {
  const auto state = FSDPState::of(module);
  if (!state) return;
  if (followed(*state)) take_snapshot(*state, FSDPModState::kPostForwardAC);
}

void FSDPWatch::describe_unsharded(const FSDPParamGroup& group) {
  if (!group.is_unsharded()) return;
  for (const auto& param : group.fsdp_params()) books_.describe(param->unsharded_param());
}

void FSDPWatch::take_snapshot(const FSDPState& state, FSDPModState of) {
  books_.refresh();
  books_.with_ledger([&](const ledger::Ledger& ledger) { records.add(state, of, ledger); });
}

void FSDPWatch::log_stage(ledger::OwnerId owner, Stage stage, bool recomputed) {
  books_.with_ledger([&](const ledger::Ledger& ledger) {
    if (ledger.current_step() != last_step_) forget_steps(ledger);
    log_.add(ledger.current_step(), ledger.now(), owner, stage, recomputed);
  });
}

/// A step begins: of those before it, only what a peak stands in is needed.
void FSDPWatch::forget_steps(const ledger::Ledger& ledger) {
  last_step_ = ledger.current_step();
  std::set<ledger::Step> needed;
  for_each_device(ledger, [&](auto device) { needed.insert(ledger.run_peak(device).step); });
  if (first_state_peak_) needed.insert(first_state_peak_->step);
  log_.keep(needed);
}

void FSDPWatch::after_step() {
  books_.refresh();
  books_.with_ledger([&](ledger::Ledger& ledger) {
    if (had_state_) return;
    for_each_device(ledger, [&](auto device) { had_state_ |= ledger.balance(device)[state_category_] != 0; });
    if (!had_state_) return;
    const auto peak = ledger.phase_peak(ledger.device(device_.str()), ledger::phases::kOptimizer);
    if (peak) first_state_peak_ = ledger.retain(*peak);
  });
}

Explanation FSDPWatch::explain(const ledger::Peak& peak, const ledger::Ledger& ledger) const {
  return plimsoll::explain(ledger, peak, log_.at(peak.step, peak.at), members_, [this](ledger::AllocationId id) {
    const auto* description = books_.description(id);
    return description == nullptr ? std::nullopt : description->named;
  });
}

}  // namespace plimsoll
