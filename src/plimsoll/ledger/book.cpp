#include "plimsoll/ledger/book.h"

#include <algorithm>
#include <string>

#include "plimsoll/base/errors.h"

namespace plimsoll::ledger {
namespace {

Contents sorted(std::vector<Allocation> allocations) {
  std::sort(allocations.begin(), allocations.end(),
            [](const Allocation& a, const Allocation& b) { return a.id < b.id; });
  return {std::move(allocations)};
}

Allocation allocation_of(const LiveRecord& record) {
  return {record.id, record.bytes, record.category, record.owner, record.stream};
}

}  // namespace

Book::Book(DeviceId device, Sequence now, Step step, PhaseId phase, std::size_t open_modules, Limits limits)
    : limits_(limits) {
  now_.device = device;
  now_.at = now;
  now_.step = step;
  now_.phase = phase;
  marks_.assign(kFirstModule + open_modules, now_);
  history_.keep(now);
}

void Book::ended(const LiveRecord& record, Sequence at) {
  settle();
  history_.ended({allocation_of(record), record.begin, at});
  if (history_.wants_collection()) history_.collect(kept_instants(), at);
}

void Book::write_risen() {
  for (Peak& mark : marks_) {
    if (mark.balance.total() < now_.balance.total()) mark = now_;
  }
  history_.keep(now_.at);
  rising_ = false;
  find_lowest();
}

void Book::find_lowest() {
  lowest_ = ~Bytes{0};
  for (const Peak& mark : marks_) lowest_ = std::min(lowest_, mark.balance.total());
}

void Book::open_windows_at(Sequence at) {
  settle();
  now_.at = at;
  history_.keep(at);
}

void Book::step_begun(Step step, Sequence at) {
  open_windows_at(at);
  if (now_.step != kNoStep) {
    finished_.push_back(marks_[kStep]);
    if (finished_.size() > limits_.steps) finished_.pop_front();
  }
  now_.step = step;
  marks_[kStep] = now_;
  marks_[kPhaseInStep] = now_;
  step_phases_.clear();
  find_lowest();
}

void Book::phase_begun(PhaseId phase, Sequence at) {
  if (phase == now_.phase) return;
  open_windows_at(at);
  const PhaseId previous = now_.phase;
  now_.phase = phase;
  change_phase(marks_[kPhaseInStep], step_phases_, previous);
  change_phase(marks_[kPhaseInRun], run_phases_, previous);
  find_lowest();
}

void Book::change_phase(Peak& mark, PhasePeaks& others, PhaseId previous) {
  others.resize(std::max<std::size_t>(others.size(), std::max(value(previous), value(now_.phase)) + std::size_t{1}));
  others[value(previous)] = mark;
  std::optional<Peak>& earlier = others[value(now_.phase)];
  mark = earlier && earlier->balance.total() >= now_.balance.total() ? *earlier : now_;
  earlier.reset();
}

void Book::run_reset(Sequence at) {
  open_windows_at(at);
  marks_[kRun] = now_;
  marks_[kPhaseInRun] = now_;
  run_phases_.clear();
  peak_reserved_ = now_.reserved;
  find_lowest();
}

void Book::module_entered(Sequence at) {
  open_windows_at(at);
  marks_.push_back(now_);
  lowest_ = std::min(lowest_, now_.balance.total());
}

Peak Book::module_left(std::size_t index) {
  settle();
  const auto mark = marks_.begin() + static_cast<std::ptrdiff_t>(kFirstModule + index);
  const Peak peak = *mark;
  marks_.erase(mark);
  find_lowest();
  left_ = peak.at;
  return peak;
}

std::optional<Peak> Book::phase_peak(PhaseId phase, Window window, const PhasePeaks& others) const {
  if (phase == now_.phase) return highest(window);
  return value(phase) < others.size() ? others[value(phase)] : std::nullopt;
}

std::vector<Sequence> Book::kept_instants() const {
  std::vector<Sequence> kept = {left_};
  for (const Peak& mark : marks_) kept.push_back(mark.at);
  for (const PhasePeaks* peaks : {&step_phases_, &run_phases_}) {
    for (const std::optional<Peak>& peak : *peaks) {
      if (peak) kept.push_back(peak->at);
    }
  }
  const std::size_t with_contents = std::min(limits_.steps_with_contents, finished_.size());
  for (std::size_t i = finished_.size() - with_contents; i < finished_.size(); ++i) kept.push_back(finished_[i].at);
  for (const auto& held : held_) {
    if (const RetainedPeak peak = held.lock()) kept.push_back(peak->at);
  }
  return kept;
}

void Book::check_kept(const Peak& peak) const {
  if (!history_.may_have_forgotten(peak.at)) return;
  const std::vector<Sequence> kept = kept_instants();
  if (std::find(kept.begin(), kept.end(), peak.at) != kept.end()) return;
  throw InvalidArgument(
      "the contents after event " + std::to_string(value(peak.at)) +
      " are no longer kept: a higher peak replaced them, or their step is too old; retain a peak to keep its contents");
}

RetainedPeak Book::retain(const Peak& peak) {
  check_kept(peak);
  if (held_.size() >= sweep_held_at_) {
    std::erase_if(held_, [](const auto& held) { return held.expired(); });
    sweep_held_at_ = 2 * held_.size() + 64;
  }
  RetainedPeak retained = std::make_shared<const Peak>(peak);
  held_.push_back(retained);
  history_.keep(peak.at);
  return retained;
}

RetainedPeak Book::retain_now(Sequence now) {
  Peak peak = now_;
  peak.at = now;
  return retain(peak);
}

Contents Book::contents(const Peak& peak, const LiveTable& live) const {
  check_kept(peak);
  std::vector<Allocation> alive;
  for (const Version& version : history_.versions()) {
    if (version.covers(peak.at)) alive.push_back(version.allocation);
  }
  for (const LiveRecord& record : live.records()) {
    if (record.device == now_.device && record.begin <= peak.at) alive.push_back(allocation_of(record));
  }
  Contents contents = sorted(std::move(alive));
  if (contents.balance() != peak.balance) {
    throw InternalError("the contents after event " + std::to_string(value(peak.at)) + " sum to " +
                        std::to_string(contents.balance().total()) + " bytes, but the balance was " +
                        std::to_string(peak.balance.total()));
  }
  return contents;
}

Contents Book::contents_now(const LiveTable& live) const {
  std::vector<Allocation> alive;
  for (const LiveRecord& record : live.records()) {
    if (record.device == now_.device) alive.push_back(allocation_of(record));
  }
  return sorted(std::move(alive));
}

std::size_t Book::memory() const {
  return sizeof(Book) + history_.memory() + held_.capacity() * sizeof(held_[0]) +
         (marks_.capacity() + finished_.size()) * sizeof(Peak) +
         (step_phases_.capacity() + run_phases_.capacity()) * sizeof(std::optional<Peak>);
}

}  // namespace plimsoll::ledger
