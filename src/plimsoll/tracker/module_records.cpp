#include "plimsoll/tracker/module_records.h"

#include <algorithm>
#include <array>

#include "plimsoll/tracker/module_tracker.h"

namespace plimsoll::inline tracker {

namespace {

constexpr std::array<std::pair<ModuleState, ModuleState>, 2> kPeaks{
    {{ModuleState::kPreForward, ModuleState::kPeakForward}, {ModuleState::kPreBackward, ModuleState::kPeakBackward}}};

/// The peak of the pass that the state begins; nullopt for a state that begins no pass with a peak.
std::optional<ModuleState> peak_of(ModuleState state) {
  const auto* const found = std::ranges::find(kPeaks, state, [](const auto& pair) { return pair.first; });
  return found == kPeaks.end() ? std::nullopt : std::optional(found->second);
}

template <class Which>
void close(ModuleRecords::Record& record, ledger::Ledger& ledger, const Which& which) {
  std::erase_if(record.open, [&](const auto& open) {
    const bool closed = which(open);
    if (closed) ledger.left(record.owner);
    return closed;
  });
}

ModuleStats stats_from(const ModuleRecords::Record& record, const ledger::Ledger& ledger) {
  ModuleStats stats;
  stats.fqn = record.fqn;
  stats.parameter_bytes = record.parameter_bytes;
  stats.buffer_bytes = record.buffer_bytes;
  stats.input_bytes = record.input_bytes;
  stats.output_bytes = record.output_bytes;
  stats.module = record.module;
  if (record.local_peak) {
    for (const auto& [device, peak] : record.calls.moments.at(*record.local_peak, ledger)) {
      stats.local_peak[device] = peak.total();
    }
  }
  stats.snapshots = record.calls.snapshots(ledger);
  stats.order = record.calls.order(stats.snapshots, kPeaks);
  return stats;
}

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

ModuleRecords::Record* ModuleRecords::find(const torch::nn::Module& module, ledger::Ledger& ledger) {
  const auto entry = records_.find(&module);
  if (entry == records_.end()) return nullptr;
  if (!is_gone(entry->second.module)) return &entry->second;
  close(entry->second, ledger, [](const auto&) { return true; });
  records_.erase(entry);
  return nullptr;
}

ModuleRecords::Record& ModuleRecords::add(torch::nn::Module& module, std::string fqn, ledger::OwnerId owner) {
  std::erase_if(records_, [](const auto& entry) { return is_gone(entry.second.module) && entry.second.open.empty(); });
  auto& record = records_[&module];
  record.module = module.weak_from_this();
  record.fqn = std::move(fqn);
  record.owner = owner;
  return record;
}

void ModuleRecords::enter(Record& record, ModuleState state, int pass, ledger::Ledger& ledger) {
  auto& calls = record.calls;
  if (calls.step != ledger.current_step() && record.open.empty()) {
    calls.step = ledger.current_step();
    calls.clear();
    record.local_peak.reset();
  }
  const auto now = calls.moments.add(ledger);
  calls[state].push_back(now);
  std::size_t call = 0;
  if (const auto peak = peak_of(state)) {
    call = calls[*peak].size();
    calls[*peak].push_back(now);
  }
  record.open.push_back({state, call, pass});
  ledger.entered(record.owner, state);
}

void ModuleRecords::leave(Record& record, ModuleState state, ModuleState entered, ledger::Ledger& ledger) {
  record.calls[state].push_back(record.calls.moments.add(ledger));
  const auto open =
      std::find_if(record.open.rbegin(), record.open.rend(), [&](const auto& entry) { return entry.state == entered; });
  if (open == record.open.rend()) return;
  const auto call = open->peak;
  record.open.erase(std::next(open).base());
  const auto* peaks = ledger.left(record.owner);
  const auto peak = peak_of(entered);
  if (peaks == nullptr || !peak) return;
  record.local_peak = record.calls.moments.add(peaks->peaks, ledger);
  record.calls[*peak][call] = *record.local_peak;
}

void ModuleRecords::close_all(ledger::Ledger& ledger) {
  for (auto& [module, record] : records_) close(record, ledger, [](const auto&) { return true; });
}

void ModuleRecords::close_pass(int pass, ledger::Ledger& ledger) {
  for (auto& [module, record] : records_) close(record, ledger, [&](const auto& open) { return open.pass == pass; });
}

std::size_t ModuleRecords::entries() const {
  std::size_t count = 0;
  for (const auto& [module, record] : records_) count += record.calls.entries();
  return count;
}

std::vector<std::pair<std::string, std::weak_ptr<torch::nn::Module>>> ModuleRecords::roots() const {
  std::vector<std::pair<std::string, std::weak_ptr<torch::nn::Module>>> found;
  for (const auto& [module, record] : records_) {
    if (record.fqn.find('.') == std::string::npos) found.emplace_back(record.fqn, record.module);
  }
  return found;
}

std::vector<ModuleStats> ModuleRecords::stats(const ledger::Ledger& ledger) const {
  std::vector<ModuleStats> all;
  for (const auto& [module, record] : records_) all.push_back(stats_from(record, ledger));
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.fqn < b.fqn; });
  return all;
}

std::optional<ModuleStats> ModuleRecords::stats_of(const torch::nn::Module& module,
                                                   const ledger::Ledger& ledger) const {
  const auto entry = records_.find(&module);
  if (entry == records_.end() || is_gone(entry->second.module)) return std::nullopt;
  return stats_from(entry->second, ledger);
}

// --- FSDP modules

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
