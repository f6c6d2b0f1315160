#include "plimsoll/tracker/explain/stage_log.h"

namespace plimsoll::inline tracker {

using fsdp::Stage;

bool is_forward(Stage stage) { return stage <= Stage::kAfterPostForward; }
bool is_backward(Stage stage) { return stage >= Stage::kBeforePreBackward && stage <= Stage::kAfterPostBackward; }
bool is_running(Stage stage) {
  return stage != Stage::kAfterPostForward && stage != Stage::kAfterPostBackward && stage != Stage::kUnshardByHand;
}

std::optional<Standing> Stages::operator[](ledger::OwnerId owner) const {
  const auto found = of_owner.find(owner);
  return found == of_owner.end() ? std::nullopt : std::optional(found->second);
}

namespace {

void apply(std::unordered_map<ledger::OwnerId, Standing>& of_owner, ledger::OwnerId owner, Stage stage,
           bool recomputed) {
  auto& standing = of_owner[owner];
  if (!recomputed) {
    standing = {stage, false};
  } else if (!is_backward(standing.stage)) {  // Otherwise it is whole for its backward already.
    standing.recomputed = true;
  }
}

}  // namespace

void StageLog::add(ledger::Step step, ledger::Sequence now, ledger::OwnerId owner, Stage stage, bool recomputed) {
  auto [entry, is_new] = steps_.try_emplace(step);
  if (is_new && entry != steps_.begin()) {
    const auto& earlier = std::prev(entry)->second;
    entry->second.before = earlier.at_end();
    entry->second.entries.reserve(earlier.entries.size());
  }
  entry->second.entries.push_back({now, owner, stage, recomputed});
}

Stages StageLog::at(ledger::Step step, ledger::Sequence at) const {
  Stages stages;
  const auto found = steps_.find(step);
  if (found == steps_.end()) return stages;
  stages.of_owner = found->second.before;
  std::vector<ledger::OwnerId> running;
  for (const auto& entry : found->second.entries) {
    if (entry.after >= at) break;
    const auto before = stages[entry.owner];
    apply(stages.of_owner, entry.owner, entry.stage, entry.recomputed);
    if (entry.recomputed) continue;
    if (entry.stage == Stage::kBeforePreForward) {
      if (running.empty()) stages.in_latest_forward.clear();
      stages.in_latest_forward.insert(entry.owner);
    }
    // A module with several outputs begins its backward once.
    const bool goes_on =
        entry.stage == Stage::kBeforePreBackward && before && is_backward(before->stage) && is_running(before->stage);
    const bool begins = entry.stage == Stage::kBeforePreForward || entry.stage == Stage::kBeforePreBackward;
    if ((begins && !goes_on) || !is_running(entry.stage)) std::erase(running, entry.owner);
    if (begins && !goes_on) running.push_back(entry.owner);
  }
  if (!running.empty()) stages.running = running.back();
  return stages;
}

void StageLog::keep(const std::set<ledger::Step>& steps) {
  if (steps_.empty()) return;
  const auto latest = steps_.rbegin()->first;
  std::erase_if(steps_, [&](const auto& entry) { return entry.first != latest && !steps.contains(entry.first); });
}

void StageLog::forget_latest() {
  if (steps_.empty()) return;
  auto& latest = steps_.rbegin()->second;
  latest.before = latest.at_end();
  latest.entries.clear();
}

std::unordered_map<ledger::OwnerId, Standing> StageLog::OfStep::at_end() const {
  auto standings = before;
  for (const auto& told : entries) apply(standings, told.owner, told.stage, told.recomputed);
  return standings;
}

std::size_t StageLog::entries() const {
  std::size_t count = 0;
  for (const auto& [step, of_step] : steps_) count += of_step.before.size() + of_step.entries.size();
  return count;
}

}  // namespace plimsoll::inline tracker
