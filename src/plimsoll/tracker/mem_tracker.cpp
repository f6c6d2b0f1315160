#include "plimsoll/tracker/mem_tracker.h"

#include <c10/util/Exception.h>
#include <torch/nn/modules/container/moduledict.h>
#include <torch/nn/modules/container/modulelist.h>

#include <algorithm>
#include <ostream>

#include "plimsoll/capture/cuda_trace.h"
#include "plimsoll/nn/optim/hooked_optimizer.h"
#include "plimsoll/tracker/explain/explain.h"
#include "plimsoll/tracker/mem_tracker_impl.h"

namespace plimsoll::inline tracker {

namespace {

std::optional<ledger::DeviceId> find_device(const ledger::Ledger& ledger, std::string_view name) {
  std::optional<ledger::DeviceId> found;
  for_each_device(ledger, [&](auto device) {
    if (ledger.name(device) == name) found = device;
  });
  return found;
}

}  // namespace

MemTracker::MemTracker(const MemTrackerOptions& options) : impl_(std::make_shared<Impl>(options)) {}
MemTracker::~MemTracker() = default;

MemTracker::Scope MemTracker::enter() {
  impl_->enter();
  return Scope(impl_);
}

MemTracker::Scope::~Scope() {
  if (const auto tracker = tracker_.lock()) tracker->leave();
}

void MemTracker::set_preparing(bool preparing) { impl_->tracked.set_preparing(preparing); }

void MemTracker::name_apart() { impl_->modules.name_apart(); }

// --- Registering ---------------------------------------------------------------------------------------------------

void MemTracker::track_module(torch::nn::Module& module) {
  // Containers have no forward for hooks.
  if (module.as<torch::nn::ModuleListImpl>() != nullptr || module.as<torch::nn::ModuleDictImpl>() != nullptr) {
    for (const auto& child : module.children()) track_module(*child);
    return;
  }
  nn::require_hooks(module);
  impl_->tensors->add(module, impl_->modules.assign_name(module));
}

void MemTracker::track_optimizer(nn::StepObservable& optimizer) {
  optimizer.for_each_state([&](const at::Tensor& parameter, std::string_view, const at::Tensor& state) {
    impl_->tensors->name_state(parameter, state);
  });
}

void MemTracker::track_stock_optimizer(torch::optim::Optimizer& optimizer) {
  nn::for_each_stock_state(optimizer, [&](const at::Tensor& parameter, std::string_view, const at::Tensor& state) {
    impl_->tensors->name_state(parameter, state);
  });
}

void MemTracker::track_tensor(const at::Tensor& tensor) {
  impl_->tracked.name_tensor(tensor, ledger::categories::kOther, ledger::kNoOwner);
}

void MemTracker::track_value(const c10::IValue& value) {
  if (value.isNone()) return;
  if (value.isTensor()) {
    if (value.toTensor().defined()) track_tensor(value.toTensor());
  } else if (value.isList()) {
    for (const c10::IValue& element : value.toListRef()) track_value(element);
  } else if (value.isTuple()) {
    for (const auto& element : value.toTupleRef().elements()) track_value(element);
  } else if (value.isGenericDict()) {
    for (const auto& entry : value.toGenericDict()) track_value(entry.value());
  } else {
    TORCH_CHECK_TYPE(
        false, "track_external was given a value of type ", value.tagKind(),
        ", which has no memory to track. It takes modules, optimizers and tensors, and containers of them.");
  }
}

void MemTracker::categorise(const at::Tensor& tensor, std::string_view category) {
  TORCH_CHECK_VALUE(!category.empty() && category != "Total", "cannot categorise a tensor as '", category,
                    "': use a name that is neither empty nor 'Total'");
  TORCH_CHECK(impl_->tracked.name_for_user(tensor, category), "cannot categorise a tensor as '", category,
              "': it has no memory of an allocator's (it is undefined, empty, on meta, or made from a blob)");
}

// --- Looking -------------------------------------------------------------------------------------------------------

Snapshot MemTracker::snapshot(SnapshotKind kind) {
  return impl_->tracked.look([&](const ledger::Ledger& ledger) {
    return kind == SnapshotKind::kCurrent ? snapshot_of(ledger) : snapshot_of(impl_->run_peaks(ledger), ledger);
  });
}

std::vector<LiveTensor> MemTracker::alive_at_peak(std::string_view device) {
  auto& tracked = impl_->tracked;
  tracked.refresh();
  std::vector<LiveTensor> alive;
  tracked.with_ledger([&](const ledger::Ledger& ledger) {
    for (const auto& peak : impl_->run_peaks(ledger)) {
      if (ledger.name(peak.device) != device) continue;
      for (const auto& allocation : ledger.contents(peak).allocations) {
        LiveTensor tensor{static_cast<std::int64_t>(allocation.bytes), std::string(ledger.name(allocation.category)),
                          std::string(ledger.name(allocation.owner)), std::nullopt, std::nullopt};
        if (const auto* description = tracked.description(allocation.id)) {
          tensor.sizes.emplace(description->sizes.begin(), description->sizes.end());
          tensor.dtype = description->dtype;
        }
        alive.push_back(std::move(tensor));
      }
    }
  });
  std::stable_sort(alive.begin(), alive.end(), [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  return alive;
}

Explanation MemTracker::explain(std::string_view device, const OwnerNames& names) {
  return impl_->tracked.look([&](const ledger::Ledger& ledger) {
    const auto peaks = impl_->run_peaks(ledger);
    const auto peak = std::ranges::find(peaks, device, [&](const auto& one) { return ledger.name(one.device); });
    TORCH_CHECK(peak != peaks.end(), "nothing was seen of ", device,
                " yet, and so there is nothing to explain: run a step within a scope of enter() first");
    if (impl_->extension != nullptr) return impl_->extension->explain(*peak, ledger, names);
    return plimsoll::explain(ledger, *peak, {}, {}, impl_->tracked, names);
  });
}

std::vector<StepPeak> MemTracker::step_peaks() {
  impl_->tracked.refresh();
  return impl_->tracked.with_ledger([](const ledger::Ledger& ledger) {
    std::map<std::int64_t, std::vector<ledger::Peak>> by_step;
    for_each_device(ledger, [&](auto device) {
      for (const auto& peak : ledger.finished_steps(device)) by_step[peak.step].push_back(peak);
      by_step[ledger.current_step()].push_back(ledger.step_peak(device));
    });
    by_step.erase(ledger::kNoStep);
    std::vector<StepPeak> steps;
    for (const auto& [step, peaks] : by_step) steps.push_back({step, snapshot_of(peaks, ledger)});
    return steps;
  });
}

std::map<std::string, Snapshot> MemTracker::phase_peaks() {
  impl_->tracked.refresh();
  return impl_->tracked.with_ledger([](const ledger::Ledger& ledger) {
    std::map<std::string, Snapshot> phases;
    for (std::size_t index = 0; index < ledger.phases(); ++index) {
      const ledger::PhaseId phase{static_cast<std::uint8_t>(index)};
      std::vector<ledger::Peak> peaks;
      for_each_device(ledger, [&](auto device) {
        if (const auto peak = ledger.phase_peak(device, phase)) peaks.push_back(*peak);
      });
      if (!peaks.empty()) phases[std::string(ledger.name(phase))] = snapshot_of(peaks, ledger);
    }
    return phases;
  });
}

Bytes MemTracker::reserved(std::string_view device) {
  return impl_->tracked.with_ledger([&](const ledger::Ledger& ledger) {
    const auto id = find_device(ledger, device);
    return id ? ledger.reserved(*id) : Bytes{0};
  });
}

DeviceBooks MemTracker::device_books(std::string_view device) {
  impl_->tracked.refresh();
  DeviceBooks books;
  const bool known = impl_->tracked.with_ledger([&](const ledger::Ledger& ledger) {
    const auto id = find_device(ledger, device);
    if (!id) return false;
    books.active.current = static_cast<std::int64_t>(ledger.balance(*id).total());
    for (const auto& peak : impl_->run_peaks(ledger)) {
      if (peak.device == *id) books.active.peak = static_cast<std::int64_t>(peak.balance.total());
    }
    books.reserved = {static_cast<std::int64_t>(ledger.reserved(*id)),
                      static_cast<std::int64_t>(impl_->peak_reserved(*id, ledger))};
    return true;
  });
  if (!known) return books;
  if (const auto taken = capture::taken_of_device(c10::Device(std::string(device)))) {
    books.outside = static_cast<std::int64_t>(*taken) - books.reserved.current;
  }
  return books;
}

std::vector<std::pair<std::string, std::weak_ptr<torch::nn::Module>>> MemTracker::roots() {
  return impl_->tracked.with_ledger([&](const ledger::Ledger&) { return impl_->records.roots(); });
}

std::vector<ModuleStats> MemTracker::module_stats() {
  return impl_->tracked.with_ledger([&](const ledger::Ledger& ledger) { return impl_->records.stats(ledger); });
}

ModuleStats MemTracker::module_stats(std::string_view fqn) {
  for (auto& stats : module_stats()) {
    if (stats.fqn == fqn) return std::move(stats);
  }
  TORCH_CHECK_VALUE(false, "no module '", fqn, "' has run in a scope of this tracker since its stats were reset");
}

void MemTracker::reset_mod_stats() {
  impl_->tracked.with_ledger([&](ledger::Ledger& ledger) {
    impl_->records.close_all(ledger);
    impl_->records.clear();
  });
}

void MemTracker::display_snapshot(SnapshotKind kind, ByteUnit unit, Layout layout, std::ostream& out) {
  out << render(snapshot(kind), unit, layout);
}

void MemTracker::display_modulewise_snapshots(const ModulewiseDisplay& display, std::ostream& out) {
  out << render(module_stats(), display);
}

MemTracker::Footprint MemTracker::footprint() {
  const auto watched = impl_->tensors->size();
  impl_->tracked.refresh();
  return impl_->tracked.with_ledger([&](const ledger::Ledger& ledger) {
    const auto further = impl_->extension == nullptr ? 0 : impl_->extension->entries();
    return Footprint{ledger.footprint().bytes, watched + impl_->tracked.entries() + impl_->records.entries() + further};
  });
}

std::set<std::string> MemTracker::parents() const { return impl_->modules.parents(); }

void MemTracker::register_user_hooks(ModuleHooks hooks) {
  TORCH_CHECK(!impl_->has_user_hooks,
              "this tracker has user hooks already: call clear_user_hooks() before registering others");
  impl_->user_hooks = std::move(hooks);
  impl_->has_user_hooks = true;
}

void MemTracker::clear_user_hooks() {
  impl_->user_hooks = {};
  impl_->has_user_hooks = false;
}

}  // namespace plimsoll::inline tracker
