#include "plimsoll/tracker/fsdp/fsdp_watch.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "plimsoll/base/categories.h"
#include "plimsoll/nn/module_contents.h"

namespace plimsoll::inline tracker {

using fsdp::MemoryUse;
using fsdp::Stage;

namespace {

/// The category of each MemoryUse.
constexpr auto kCategoryOfUse = std::to_array<std::string_view>(
    {category::kShardedParam.name, category::kUnshardedParam.name, category::kAllGatherInput.name,
     category::kAllGather.name, category::kAllGatherCopyOut.name, category::kPostForwardShard.name,
     category::kUnshardedGrad.name, category::kAccumulatedGrad.name, category::kReduceScatter.name,
     category::kReduceScatterOutput.name, category::kAllReduce.name, category::kPartialGrad.name,
     category::kShardedGrad.name});
static_assert(kCategoryOfUse.size() == fsdp::kMemoryUses && kCategoryOfUse.back() == category::kShardedGrad.name);

/// torch's name of the stage. The runtime does not see the end of a recomputation, which may stop early.
std::optional<FSDPModState> snapshot_of_stage(Stage stage, bool recomputing) {
  if (recomputing) {
    return stage == Stage::kAfterPreForward ? std::optional(FSDPModState::kPreForwardAC) : std::nullopt;
  }
  // The other stages have the same order in both enumerations.
  static_assert(static_cast<int>(Stage::kAfterPostBackward) == static_cast<int>(FSDPModState::kAfterPostBackward));
  return stage == Stage::kUnshardByHand ? std::nullopt : std::optional(static_cast<FSDPModState>(stage));
}

}  // namespace

FSDPWatch::FSDPWatch(std::unique_ptr<FSDPRuntime> runtime, TrackedLedger& tracked, WatchedTensors& tensors,
                     ModuleTracker& modules)
    : runtime_(std::move(runtime)), tracked_(tracked), tensors_(tensors), modules_(modules) {
  std::transform(kCategoryOfUse.begin(), kCategoryOfUse.end(), categories_.begin(),
                 [&](std::string_view name) { return tracked_.category(name); });
  state_category_ = tracked_.category(category::kOptState.name);
  inputs_category_ = tracked_.category(category::kInputs.name);
  tensors_.leave_to(this, state_category_);
  tracked_.set_classifier(this);
  runtime_->listen(*this);
}

FSDPWatch::~FSDPWatch() {
  runtime_->stop();
  tracked_.set_classifier(nullptr);
  tensors_.leave_to(nullptr, ledger::categories::kOptstate);
}

// --- Modules and groups --------------------------------------------------------------------------------------------

void FSDPWatch::add_root(torch::nn::Module& root) {
  const auto device = runtime_->device_of(root);
  if (!device_) device_ = device;
  roots_.push_back({root.weak_from_this(), &root, {}});
  follow_all();
  tensors_.add(root, modules_.assign_name(root));
}

void FSDPWatch::look_again() {
  tracked_.with_ledger([&](const ledger::Ledger& ledger) {
    // The run's peak starts again here. Of the peaks before, only the first state's is still needed.
    if (!first_state_peak_ || first_state_peak_->step != ledger.current_step()) log_.forget_latest();
  });
  follow_all();
}

void FSDPWatch::follow_all() {
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(followed_, [](const auto& entry) { return entry.second.life.expired(); });
  }
  std::erase_if(roots_, [](const auto& root) { return is_gone(root.module); });
  if (roots_.empty()) return;
  for (auto& root : roots_) root.name = modules_.assign_name(*root.address);  // Names all below it, too.
  tracked_.with_ledger([&](const ledger::Ledger& ledger) {
    members_.clear();
    records.forget_dead();
    for_each_device(ledger, [&](auto device) { had_state_ |= ledger.balance(device)[state_category_] != 0; });
  });
  for (const auto& root : roots_) follow(*root.address);
}

void FSDPWatch::before_step() {
  const bool renamed = std::any_of(roots_.begin(), roots_.end(), [&](const auto& root) {
    return !is_gone(root.module) && modules_.assign_name(*root.address) != root.name;
  });
  if (renamed) follow_all();
}

void FSDPWatch::follow(torch::nn::Module& module) {
  if (const auto state = runtime_->state_of(module)) {
    std::string name;
    std::vector<std::string> members;
    for (auto* member : state->modules) {
      members.push_back(modules_.assign_name(*member));
      name += (name.empty() ? "" : ", ") + members.back();
    }
    const auto owner = tracked_.owner(name);
    tracked_.with_ledger([&](const ledger::Ledger&) {
      records.follow(*state, name);
      if (std::none_of(members_.begin(), members_.end(), [&](const auto& known) { return known.second == owner; })) {
        for (auto& member : members) members_.emplace_back(std::move(member), owner);
      }
    });
    {
      const std::lock_guard lock(mutex_);
      std::vector<Key> groups;
      for (const auto& group : state->groups) {
        groups.push_back(group.key);
        followed_[group.key] = {group.life, state->key, {group.key}, owner};
      }
      followed_[state->key] = {state->life, state->key, std::move(groups), owner};
    }
    for (const auto& group : state->groups) {
      runtime_->for_each_held(group.key,
                              [&](MemoryUse use, const at::Tensor& tensor) { this->name(tensor, use, owner); });
    }
  }
  for (const auto& [name, child] : nn::children_of(module)) follow(*child);
}

void FSDPWatch::name(const at::Tensor& tensor, MemoryUse use, ledger::OwnerId owner) {
  tracked_.name_tensor(tensor, categories_[static_cast<std::size_t>(use)], owner);
}

const FSDPWatch::Followed* FSDPWatch::find(Key key) const {
  const auto found = followed_.find(key);
  // If it is gone, another may have its address.
  return found == followed_.end() || found->second.life.expired() ? nullptr : &found->second;
}

std::optional<FSDPWatch::Followed> FSDPWatch::followed(Key key) const {
  const std::lock_guard lock(mutex_);
  const auto* found = find(key);
  return found == nullptr ? std::nullopt : std::optional(*found);
}

ledger::OwnerId FSDPWatch::owner_of_group(Key group) const {
  const std::lock_guard lock(mutex_);
  const auto* found = find(group);
  return found == nullptr ? ledger::kNoOwner : found->owner;
}

std::optional<ledger::OwnerId> FSDPWatch::owner_of(const at::Tensor& parameter) const {
  const auto group = runtime_->group_of(parameter);
  if (group == nullptr) return std::nullopt;
  return owner_of_group(group);
}

// --- Events --------------------------------------------------------------------------------------------------

std::optional<AllocationClassifier::Class> FSDPWatch::classify(c10::Device device) const noexcept {
  const auto use = runtime_->current_use(device);
  if (!use) return std::nullopt;
  return Class{categories_[static_cast<std::size_t>(use->use)], owner_of_group(use->group)};
}

void FSDPWatch::memory(MemoryUse use, const at::Tensor& tensor, Key group) noexcept {
  name(tensor, use, owner_of_group(group));
}

void FSDPWatch::state_in(Stage stage, Key state) noexcept { stage_begins(stage, state, ModuleTracker::is_bw()); }

void FSDPWatch::group_in(Stage stage, Key group) noexcept { stage_begins(stage, group, /*recomputing=*/false); }

void FSDPWatch::stage_begins(Stage stage, Key key, bool recomputing) {
  if (!tracked_.tracking()) return;
  const auto entry = followed(key);
  if (!entry) return;
  if (stage == Stage::kAfterPreForward || stage == Stage::kAfterPreBackward) {
    for (const auto group : entry->groups) {
      runtime_->for_each_unsharded(group, [&](const at::Tensor& tensor) { tracked_.describe(tensor); });
    }
  }
  if (const auto of = snapshot_of_stage(stage, recomputing)) take_snapshot(entry->state, *of);
  if (!recomputing || stage == Stage::kBeforePreForward) log_stage(entry->owner, stage, recomputing);
}

void FSDPWatch::after_recomputed_forward(torch::nn::Module& module) {
  const auto state = runtime_->state_of(module);
  if (state && followed(state->key)) take_snapshot(state->key, FSDPModState::kPostForwardAC);
}

void FSDPWatch::take_snapshot(Key state, FSDPModState of) {
  tracked_.refresh();
  tracked_.with_ledger([&](const ledger::Ledger& ledger) { records.add(state, of, ledger); });
}

void FSDPWatch::log_stage(ledger::OwnerId owner, Stage stage, bool recomputed) {
  tracked_.with_ledger([&](const ledger::Ledger& ledger) {
    if (ledger.current_step() != last_step_) forget_steps(ledger);
    log_.add(ledger.current_step(), ledger.now(), owner, stage, recomputed);
  });
}

/// A step begins. Of the steps before it, only those with a peak are needed.
void FSDPWatch::forget_steps(const ledger::Ledger& ledger) {
  last_step_ = ledger.current_step();
  std::set<ledger::Step> needed;
  for_each_device(ledger, [&](auto device) { needed.insert(ledger.run_peak(device).step); });
  if (first_state_peak_) needed.insert(first_state_peak_->step);
  log_.keep(needed);
}

void FSDPWatch::after_step() {
  tracked_.refresh();
  tracked_.with_ledger([&](ledger::Ledger& ledger) {
    if (had_state_) return;
    for_each_device(ledger, [&](auto device) { had_state_ |= ledger.balance(device)[state_category_] != 0; });
    if (!had_state_ || !device_) return;
    const auto peak = ledger.phase_peak(ledger.device(device_->str()), ledger::phases::kOptimizer);
    if (peak) first_state_peak_ = ledger.retain(*peak);
  });
}

Explanation FSDPWatch::explain(const ledger::Peak& peak, const ledger::Ledger& ledger, const OwnerNames& names) const {
  return plimsoll::explain(ledger, peak, log_.at(peak.step, peak.at), members_, tracked_, names);
}

}  // namespace plimsoll::inline tracker
