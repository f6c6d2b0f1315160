#include "plimsoll/tracker/module_records.h"

#include <algorithm>

#include "plimsoll/tracker/explain/state_order.h"
#include "plimsoll/tracker/module_tracker.h"

namespace plimsoll::inline tracker {

namespace {

ModuleState peak_of(ModuleState state) {
  return state == ModuleState::kPreForward ? ModuleState::kPeakForward : ModuleState::kPeakBackward;
}

bool has_peak(ModuleState state) { return state == ModuleState::kPreForward || state == ModuleState::kPreBackward; }

std::vector<Moments::Place>& calls(ModuleRecords::Record& record, ModuleState state) {
  return record.states[ledger::value(state)];
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
  ModuleStats stats{.fqn = record.fqn,
                    .parameter_bytes = record.parameter_bytes,
                    .buffer_bytes = record.buffer_bytes,
                    .input_bytes = record.input_bytes,
                    .output_bytes = record.output_bytes,
                    .module = record.module};
  if (record.local_peak) {
    for (const auto& [device, peak] : record.moments.at(*record.local_peak, ledger)) {
      stats.local_peak[device] = peak.total();
    }
  }
  for (std::size_t state = 0; state < record.states.size(); ++state) {
    for (const auto place : record.states[state]) {
      stats.snapshots[ModuleState{static_cast<std::uint8_t>(state)}].push_back(record.moments.at(place, ledger));
    }
  }
  std::vector<std::pair<ModuleState, ModuleState>> peaks;
  for (const auto beginning : {ModuleState::kPreForward, ModuleState::kPreBackward}) {
    if (stats.snapshots.contains(peak_of(beginning))) peaks.emplace_back(beginning, peak_of(beginning));
  }
  stats.order = in_order_of_coming(record.states, peaks);
  return stats;
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
  if (record.step != ledger.current_step() && record.open.empty()) {
    record.step = ledger.current_step();
    record.moments.clear();
    record.local_peak.reset();
    for (auto& places : record.states) places.clear();
  }
  const auto now = record.moments.add(ledger);
  calls(record, state).push_back(now);
  std::size_t call = 0;
  if (has_peak(state)) {
    call = calls(record, peak_of(state)).size();
    calls(record, peak_of(state)).push_back(now);
  }
  record.open.push_back({state, call, pass});
  ledger.entered(record.owner, state);
}

void ModuleRecords::leave(Record& record, ModuleState state, ModuleState entered, ledger::Ledger& ledger) {
  calls(record, state).push_back(record.moments.add(ledger));
  const auto open =
      std::find_if(record.open.rbegin(), record.open.rend(), [&](const auto& entry) { return entry.state == entered; });
  if (open == record.open.rend()) return;
  const auto call = open->peak;
  record.open.erase(std::next(open).base());
  const auto* peaks = ledger.left(record.owner);
  if (peaks == nullptr || !has_peak(entered)) return;
  record.local_peak = record.moments.add(peaks->peaks, ledger);
  calls(record, peak_of(entered))[call] = *record.local_peak;
}

void ModuleRecords::close_all(ledger::Ledger& ledger) {
  for (auto& [module, record] : records_) close(record, ledger, [](const auto&) { return true; });
}

void ModuleRecords::close_pass(int pass, ledger::Ledger& ledger) {
  for (auto& [module, record] : records_) close(record, ledger, [&](const auto& open) { return open.pass == pass; });
}

std::size_t ModuleRecords::entries() const {
  std::size_t count = 0;
  for (const auto& [module, record] : records_) {
    for (const auto& places : record.states) count += places.size();
  }
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

}  // namespace plimsoll::inline tracker
