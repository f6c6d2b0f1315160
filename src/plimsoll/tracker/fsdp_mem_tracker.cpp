#include "plimsoll/tracker/fsdp_mem_tracker.h"

#include <c10/util/Exception.h>

#include <ostream>

#include "plimsoll/tracker/fsdp_watch.h"
#include "plimsoll/tracker/mem_tracker_impl.h"

namespace plimsoll {

FSDPMemTracker::FSDPMemTracker(fsdp::ModuleRef root, const MemTrackerOptions& options)
    : MemTracker(options), watch_(std::make_unique<FSDPWatch>(*root, impl_->books, *impl_->tensors, impl_->modules)) {
  impl_->extension = watch_.get();
}

FSDPMemTracker::~FSDPMemTracker() { impl_->extension = nullptr; }

// --- Inputs --------------------------------------------------------------------------------------------------------

void FSDPMemTracker::InputVisitor::tensor(const at::Tensor& tensor) {
  tracker.impl_->books.name_tensor(tensor, tracker.watch_->inputs_category(), ledger::kNoOwner);
}

void FSDPMemTracker::InputVisitor::value(const c10::IValue& value) {
  value.visit([this](const c10::IValue& part) {
    if (part.isTensor() && part.toTensor().defined()) tensor(part.toTensor());
    return false;
  });
}

void FSDPMemTracker::InputVisitor::module(torch::nn::Module& module) {
  TORCH_CHECK_TYPE(false, "track_inputs was given a module (", module.name(),
                   "): the root is given to the constructor, and what is below it is followed.");
}

void FSDPMemTracker::InputVisitor::optimizer(nn::StepObservable& optimizer) {
  TORCH_CHECK_TYPE(false, "track_inputs was given an optimizer (", optimizer.optimizer_name(),
                   "): give it to the constructor, after the root.");
}

void FSDPMemTracker::InputVisitor::stock_optimizer(torch::optim::Optimizer&) {
  TORCH_CHECK_TYPE(false, "track_inputs was given an optimizer: give it to the constructor, after the root.");
}

// --- Looking -------------------------------------------------------------------------------------------------------

std::vector<FSDPModuleStats> FSDPMemTracker::fsdp_module_stats() {
  return impl_->books.with_ledger(
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
  impl_->books.with_ledger([&](const ledger::Ledger&) { watch_->records.clear(); });
}

void FSDPMemTracker::display_modulewise_snapshots(const ModulewiseDisplay& display, std::ostream& out) {
  out << render(fsdp_module_stats(), display);
}

Explanation FSDPMemTracker::explain() {
  auto& books = impl_->books;
  books.refresh();
  books.throw_defect();
  return books.with_ledger([&](const ledger::Ledger& ledger) {
    for (const auto& peak : impl_->run_peaks(ledger)) {
      if (ledger.name(peak.device) == watch_->device().str()) return watch_->explain(peak, ledger);
    }
    TORCH_CHECK(false, "nothing was seen of ", watch_->device(),
                " yet, and so there is nothing to explain: run a step within ", "a scope of enter() first");
  });
}

std::optional<Explanation> FSDPMemTracker::explain_first_state() {
  impl_->books.refresh();
  impl_->books.throw_defect();
  return impl_->books.with_ledger([&](const ledger::Ledger& ledger) -> std::optional<Explanation> {
    const auto& peak = watch_->first_state_peak();
    if (!peak) return std::nullopt;
    return watch_->explain(*peak, ledger);
  });
}

RankPeak FSDPMemTracker::worst_rank() {
  return highest_of_ranks(snapshot(SnapshotKind::Peak),
                          c10::DeviceTypeName(watch_->device().type(), /*lower_case=*/true));
}

}  // namespace plimsoll
