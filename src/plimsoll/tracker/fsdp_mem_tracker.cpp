#include "plimsoll/tracker/fsdp_mem_tracker.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <ostream>

#include "plimsoll/tracker/fsdp/fsdp_watch.h"
#include "plimsoll/tracker/mem_tracker_impl.h"

namespace plimsoll::inline tracker {

FSDPMemTracker::FSDPMemTracker(std::unique_ptr<FSDPRuntime> runtime, const MemTrackerOptions& options)
    : MemTracker(options),
      watch_(std::make_unique<FSDPWatch>(std::move(runtime), impl_->tracked, *impl_->tensors, impl_->modules)) {
  impl_->extension = watch_.get();
}

FSDPMemTracker::~FSDPMemTracker() { impl_->extension = nullptr; }

void FSDPMemTracker::add_root(fsdp::ModuleRef root) { watch_->add_root(*root); }

// --- Inputs --------------------------------------------------------------------------------------------------------

void FSDPMemTracker::InputVisitor::track_tensor(const at::Tensor& tensor) {
  tracker.impl_->tracked.name_tensor(tensor, tracker.watch_->inputs_category(), ledger::kNoOwner);
}

void FSDPMemTracker::InputVisitor::track_value(const c10::IValue& value) {
  value.visit([this](const c10::IValue& part) {
    if (part.isTensor() && part.toTensor().defined()) track_tensor(part.toTensor());
    return false;
  });
}

void FSDPMemTracker::InputVisitor::track_module(torch::nn::Module& module) {
  TORCH_CHECK_TYPE(false, "track_inputs was given a module (", module.name(),
                   "): give the root to the constructor, which follows all modules below it.");
}

void FSDPMemTracker::InputVisitor::track_optimizer(nn::StepObservable& optimizer) {
  TORCH_CHECK_TYPE(false, "track_inputs was given an optimizer (", optimizer.optimizer_name(),
                   "): give it to the constructor, after the root.");
}

void FSDPMemTracker::InputVisitor::track_stock_optimizer(torch::optim::Optimizer&) {
  TORCH_CHECK_TYPE(false, "track_inputs was given an optimizer: give it to the constructor, after the root.");
}

// --- Looking -------------------------------------------------------------------------------------------------------

std::vector<FSDPModuleStats> FSDPMemTracker::fsdp_module_stats() {
  return impl_->tracked.with_ledger(
      [&](const ledger::Ledger& ledger) { return watch_->records.stats(impl_->records, ledger); });
}

FSDPModuleStats FSDPMemTracker::fsdp_module_stats(std::string_view fqn) {
  for (auto& stats : fsdp_module_stats()) {
    if (stats.fqn == fqn) return std::move(stats);
  }
  TORCH_CHECK_VALUE(false, "no FSDP module '", fqn, "' has run in a scope of this tracker since its stats were reset");
}

void FSDPMemTracker::reset_mod_stats() {
  MemTracker::reset_mod_stats();
  impl_->tracked.with_ledger([&](const ledger::Ledger&) { watch_->records.clear(); });
}

void FSDPMemTracker::display_modulewise_snapshots(const ModulewiseDisplay& display, std::ostream& out) {
  out << render(fsdp_module_stats(), display);
}

Explanation FSDPMemTracker::explain() {
  if (const auto device = watch_->device()) return explain(device->str());
  return impl_->tracked.look([&](const ledger::Ledger& ledger) {
    const auto peaks = impl_->run_peaks(ledger);
    const auto peak = std::ranges::max_element(peaks, {}, [](const auto& one) { return one.balance.total(); });
    TORCH_CHECK(peak != peaks.end(),
                "nothing was seen of any device yet, and so there is nothing to explain: run a step within a scope of "
                "enter() first");
    return watch_->explain(*peak, ledger, as_in_ledger);
  });
}

std::optional<Explanation> FSDPMemTracker::explain_first_state() {
  return impl_->tracked.look([&](const ledger::Ledger& ledger) -> std::optional<Explanation> {
    const auto& peak = watch_->first_state_peak();
    if (!peak) return std::nullopt;
    return watch_->explain(*peak, ledger, as_in_ledger);
  });
}

}  // namespace plimsoll::inline tracker
