#include "plimsoll/tracker/tracked_ledger.h"

#include <c10/util/Exception.h>
#include <torch/csrc/autograd/graph_task.h>

#include <unordered_set>

#include "plimsoll/capture/cuda_trace.h"
#include "plimsoll/capture/holders.h"
#include "plimsoll/nn/checkpoint/checkpoint.h"
#include "plimsoll/nn/optim/step_observable.h"

namespace plimsoll::inline tracker {

namespace categories = ledger::categories;
namespace phases = ledger::phases;

namespace {

Description description_of(const at::Tensor& tensor) {
  // A tensor with symbolic sizes (torch.compile) has no shape in numbers.
  const bool symbolic = tensor.unsafeGetTensorImpl()->has_symbolic_sizes_strides();
  return {symbolic ? c10::DimVector() : c10::DimVector(tensor.sizes()), tensor.scalar_type()};
}

}  // namespace

TrackedLedger::TrackedLedger(const ledger::Ledger::Options& options, ledger::Log* log) : ledger_(options) {
  if (log != nullptr) ledger_.record_to(log);
  subscription_.emplace(*this);
}

TrackedLedger::~TrackedLedger() { subscription_.reset(); }

// --- From capture --------------------------------------------------------------------------------------------------

void TrackedLedger::allocated(const capture::Allocation& allocation) noexcept {
  const bool tracking = tracking_.load(std::memory_order_relaxed);
  const bool backward = tracking && torch::autograd::get_current_graph_task_id() != -1;
  const bool recomputing = tracking && nn::recomputing();
  std::lock_guard lock(mutex_);
  auto category = categories::kOther;
  auto owner = ledger::kNoOwner;
  if (tracking) {
    const bool in_optimizer = !optimizers_.empty() && !backward && ledger_.current_phase() != phases::kForward;
    category = in_optimizer || (backward && !recomputing) ? categories::kTemp : categories::kActivation;
    if (in_optimizer) {
      owner = optimizers_.back();
      if (nn::StateCreation::under_way()) category = state_category_;
    } else if (!ledger_.open_modules().empty()) {
      owner = ledger_.open_modules().back().module;
    } else if (preparing_ && category == categories::kActivation) {
      category = categories::kOther;
    }
    if (GradientBuckets::under_way()) category = categories::kGradient;
    follow_phase(backward, in_optimizer);
  }
  if (classifier_ != nullptr) {
    if (const auto known = classifier_->classify(allocation.device)) {
      category = known->category;
      owner = known->owner;
    }
  }
  ledger_.allocated(allocation.id, allocation.bytes, device_id(allocation.device), allocation.stream, category, owner);
}

/// A backward pass begins before its first module does.
void TrackedLedger::follow_phase(bool backward, bool in_optimizer) noexcept {
  const auto now = ledger_.current_phase();
  if (in_optimizer) {
    if (now != phases::kOptimizer) ledger_.phase(phases::kOptimizer);
  } else if (backward) {
    if (now != phases::kBackward) ledger_.phase(phases::kBackward);
  } else if (now == phases::kBackward) {
    ledger_.phase(phases::kOther);
  }
}

void TrackedLedger::freed(ledger::AllocationId id) noexcept {
  std::lock_guard lock(mutex_);
  ledger_.freed(id);
  const auto named = named_.find(ledger::value(id));
  if (named != named_.end()) {
    homeless_.push_back(std::move(named->second));
    named_.erase(named);
    has_homeless_.store(true, std::memory_order_release);
  }
}

void TrackedLedger::resized(ledger::AllocationId id, Bytes bytes) noexcept {
  std::lock_guard lock(mutex_);
  ledger_.resized(id, bytes);
}

void TrackedLedger::segment(c10::Device device, std::int64_t delta) noexcept {
  std::lock_guard lock(mutex_);
  ledger_.segment(device_id(device), delta);
}

void TrackedLedger::defect(const char* what) noexcept {
  std::lock_guard lock(mutex_);
  if (defect_ == nullptr) defect_ = what;
}

ledger::DeviceId TrackedLedger::device_id(c10::Device device) {
  for (const auto& [known, id] : devices_) {
    if (known == device) return id;
  }
  devices_.emplace_back(device, ledger_.device(device.str()));
  return devices_.back().second;
}

// --- The activity of the training ----------------------------------------------------------------------------------

void TrackedLedger::set_tracking(bool tracking) {
  tracking_.store(tracking, std::memory_order_relaxed);
  std::lock_guard lock(mutex_);
  optimizers_.clear();
  if (ledger_.current_phase() != phases::kOther) ledger_.phase(phases::kOther);
}

void TrackedLedger::step_entered(std::string_view owner) {
  std::lock_guard lock(mutex_);
  optimizers_.push_back(ledger_.owner(owner));
  ledger_.phase(phases::kOptimizer);
}

void TrackedLedger::step_left() {
  std::lock_guard lock(mutex_);
  if (!optimizers_.empty()) optimizers_.pop_back();
  ledger_.phase(optimizers_.empty() ? phases::kOther : phases::kOptimizer);
}

// --- Naming --------------------------------------------------------------------------------------------------------

void TrackedLedger::name_tensor(const at::Tensor& tensor, ledger::CategoryId category,
                                std::optional<ledger::OwnerId> owner) {
  if (!tensor.defined()) return;
  capture::for_each_holder(tensor, [&](const at::Tensor& holder) {
    if (const auto found = capture::adopt(holder)) name_found(holder, found->id, category, owner, /*by_user=*/false);
  });
}

bool TrackedLedger::name_for_user(const at::Tensor& tensor, std::string_view name) {
  if (!tensor.defined()) return false;
  bool found = false;
  capture::for_each_holder(tensor, [&](const at::Tensor& holder) {
    const auto allocation = capture::adopt(holder);
    if (!allocation) return;
    found = true;
    name_found(holder, allocation->id, category(name), std::nullopt, /*by_user=*/true);
  });
  return found;
}

void TrackedLedger::name_found(const at::Tensor& tensor, ledger::AllocationId id, ledger::CategoryId category,
                               std::optional<ledger::OwnerId> owner, bool by_user) {
  std::lock_guard lock(mutex_);
  const auto entry = ledger_.find(id);
  if (!entry) return;
  const auto known = named_.find(ledger::value(id));
  if (known != named_.end() && known->second.by_user && !by_user) return;
  const auto of = owner.value_or(entry->owner);
  if (entry->category != category || entry->owner != of) ledger_.classified(id, category, of);
  named_.insert_or_assign(ledger::value(id), Named{tensor.storage().getWeakStorageImpl(), category, of, by_user});
  auto& description = descriptions_[ledger::value(id)] = description_of(tensor);
  description.named = AllocationClassifier::Class{category, of};
}

bool TrackedLedger::is_named(ledger::AllocationId id, ledger::CategoryId category,
                             std::optional<ledger::OwnerId> owner) const {
  std::lock_guard lock(mutex_);
  const auto entry = ledger_.find(id);
  return entry && entry->category == category && (!owner || entry->owner == *owner);
}

std::int64_t TrackedLedger::describe(const at::Tensor& tensor) {
  std::int64_t bytes = 0;
  if (!tensor.defined()) return bytes;
  capture::for_each_holder(tensor, [&](const at::Tensor& holder) {
    const auto found = capture::find(holder);
    if (!found) return;
    bytes += static_cast<std::int64_t>(found->bytes);
    std::lock_guard lock(mutex_);
    if (descriptions_.find(ledger::value(found->id)) == descriptions_.end()) {
      descriptions_[ledger::value(found->id)] = description_of(holder);
    }
  });
  return bytes;
}

// --- Looking -------------------------------------------------------------------------------------------------------

void TrackedLedger::refresh() {
  capture::settle();
  if (has_homeless_.exchange(false, std::memory_order_acq_rel)) name_resized();
  if (capture::cuda_workspaces_version() != workspaces_version_.load(std::memory_order_relaxed)) name_workspaces();
}

void TrackedLedger::name_resized() {
  std::vector<Named> homeless;
  {
    std::lock_guard lock(mutex_);
    homeless.swap(homeless_);
  }
  for (auto& named : homeless) {
    const auto storage = named.storage.lock();
    if (!storage) continue;
    const auto found = capture::find(c10::Storage(storage));
    std::lock_guard lock(mutex_);
    if (found && ledger_.find(found->id)) {
      ledger_.classified(found->id, named.category, named.owner);
      named_.insert_or_assign(ledger::value(found->id), std::move(named));
    } else {
      // Resized to zero bytes; it may get memory again.
      homeless_.push_back(std::move(named));
      has_homeless_.store(true, std::memory_order_release);
    }
  }
}

void TrackedLedger::name_workspaces() {
  workspaces_version_ = capture::cuda_workspaces_version();
  for (const auto& [device, address] : capture::cuda_workspaces()) {
    const auto found = capture::Registry::of_process().find(device, address);
    if (!found) continue;
    std::lock_guard lock(mutex_);
    const auto entry = ledger_.find(found->id);
    if (entry && entry->category != categories::kWorkspace) {
      ledger_.classified(found->id, categories::kWorkspace, ledger::kNoOwner);
    }
  }
}

const Description* TrackedLedger::description(ledger::AllocationId id) const {
  const auto found = descriptions_.find(ledger::value(id));
  return found == descriptions_.end() ? nullptr : &found->second;
}

std::optional<AllocationClassifier::Class> TrackedLedger::named_since(ledger::AllocationId id) const {
  const auto* known = description(id);
  return known == nullptr ? std::nullopt : known->named;
}

void TrackedLedger::prune_descriptions() {
  constexpr std::size_t kAlwaysKept = 4096;
  if (descriptions_.size() < 2 * ledger_.live_count() + kAlwaysKept) return;
  std::unordered_set<std::uint64_t> needed;
  for (std::size_t index = 0; index < ledger_.devices(); ++index) {
    const auto peak = ledger_.run_peak(ledger::DeviceId{static_cast<std::uint16_t>(index)});
    for (const auto& allocation : ledger_.contents(peak).allocations) needed.insert(ledger::value(allocation.id));
  }
  for (auto entry = descriptions_.begin(); entry != descriptions_.end();) {
    const bool keep = needed.contains(entry->first) || ledger_.find(ledger::AllocationId{entry->first});
    entry = keep ? std::next(entry) : descriptions_.erase(entry);
  }
}

void TrackedLedger::throw_defect() {
  std::optional<std::string> defect;
  {
    std::lock_guard lock(mutex_);
    defect = ledger_.take_defect();
    if (const char* noted = std::exchange(defect_, nullptr); noted != nullptr) defect = noted;
  }
  TORCH_CHECK(!defect, "the memory tracker missed an event: ", *defect);
}

}  // namespace plimsoll::inline tracker
