#include "plimsoll/tracker/fsdp/fsdp_records.h"

#include <algorithm>
#include <utility>

namespace plimsoll::inline tracker {

namespace {

/// Keeps the higher total of each device.
void take_higher(Snapshot& highest, const Snapshot& other) {
  for (const auto& [device, of_device] : other) {
    const auto [entry, is_new] = highest.try_emplace(device, of_device);
    if (!is_new && entry->second.total() < of_device.total()) entry->second = of_device;
  }
}

void add_peaks(FSDPModuleStats& stats, const ModuleStats& module) {
  for (const auto& [from, to] : {std::pair(ModuleState::kPeakForward, FSDPModState::kPeakForward),
                                 std::pair(ModuleState::kPeakBackward, FSDPModState::kPeakBackward)}) {
    const auto calls = module.snapshots.find(from);
    if (calls == module.snapshots.end()) continue;
    auto& peaks = stats.snapshots[to];
    if (peaks.size() < calls->second.size()) peaks.resize(calls->second.size());
    for (std::size_t call = 0; call < calls->second.size(); ++call) take_higher(peaks[call], calls->second[call]);
  }
  for (const auto& [device, total] : module.local_peak) {
    auto& highest = stats.local_peak[device];
    highest = std::max(highest, total);
  }
}

}  // namespace

void FSDPRecords::follow(const FSDPRuntime::State& state, const std::string& fqn) {
  auto& record = records_[state.key];
  record.life = state.life;
  record.modules.assign(state.modules.begin(), state.modules.end());
  record.fqn = fqn;
}

void FSDPRecords::forget_dead() {
  std::erase_if(records_, [](const auto& entry) { return entry.second.life.expired(); });
}

void FSDPRecords::add(FSDPRuntime::Key state, FSDPModState in, const ledger::Ledger& ledger) {
  const auto found = records_.find(state);
  if (found == records_.end()) return;
  auto& calls = found->second.calls;
  if (calls.step != ledger.current_step()) {
    calls.step = ledger.current_step();
    calls.clear();
  }
  calls[in].push_back(calls.moments.add(ledger));
}

std::vector<FSDPModuleStats> FSDPRecords::stats(const ModuleRecords& modules, const ledger::Ledger& ledger) const {
  std::vector<FSDPModuleStats> all;
  for (const auto& [address, record] : records_) {
    if (record.life.expired()) continue;
    FSDPModuleStats stats;
    stats.fqn = record.fqn;
    stats.snapshots = record.calls.snapshots(ledger);
    if (stats.snapshots.empty()) continue;
    for (const auto* module : record.modules) {
      const auto of_module = modules.stats_of(*module, ledger);
      if (!of_module) continue;
      add_peaks(stats, *of_module);
      stats.modules.push_back(of_module->module);
    }
    stats.order =
        record.calls.order(stats.snapshots, {{{FSDPModState::kBeforePreForward, FSDPModState::kPeakForward},
                                              {FSDPModState::kBeforePreBackward, FSDPModState::kPeakBackward}}});
    all.push_back(std::move(stats));
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.fqn < b.fqn; });
  return all;
}

void FSDPRecords::clear() {
  for (auto& [address, record] : records_) record.calls.clear();
}

std::size_t FSDPRecords::entries() const {
  std::size_t count = 0;
  for (const auto& [address, record] : records_) count += record.calls.entries();
  return count;
}

}  // namespace plimsoll::inline tracker
