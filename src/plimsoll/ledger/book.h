#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "plimsoll/base/bytes.h"
#include "plimsoll/ledger/balance.h"
#include "plimsoll/ledger/contents.h"
#include "plimsoll/ledger/history.h"
#include "plimsoll/ledger/ids.h"
#include "plimsoll/ledger/live_table.h"
#include "plimsoll/ledger/peak.h"

namespace plimsoll::ledger {

/// The book of one device: its balance, the peak of each open window, and the allocations that were alive at each peak.
///
/// A window is a period that has a peak: the run, the step, the phase, an open module. While the total rises, nothing
/// is copied. Peaks are written when the total is about to fall, or when another value of a peak is about to change. So
/// a rise costs one comparison an event.
class Book {
 public:
  struct Limits {
    std::size_t steps;
    std::size_t steps_with_contents;
  };

  /// Adds a device at `now`; steps, phases and modules may be open then.
  Book(DeviceId device, Sequence now, Step step, PhaseId phase, std::size_t open_modules, Limits limits);

  const Balance& balance() const { return now_.balance; }
  Bytes reserved() const { return now_.reserved; }
  Bytes peak_reserved() const { return peak_reserved_; }

  bool has_room_for(Bytes bytes) const { return bytes <= ~Bytes{0} - now_.balance.total(); }
  void allocated(CategoryId category, Bytes bytes, Sequence at) {
    now_.balance.add(category, bytes);
    risen(bytes, at);
  }
  /// `record` is the allocation before the free.
  void freed(const LiveRecord& record, Sequence at) {
    ended(record, at);
    now_.balance.subtract(record.category, record.bytes);
  }
  void resized(const LiveRecord& record, Bytes bytes, Sequence at) {
    freed(record, at);
    now_.balance.add(record.category, bytes);
    risen(bytes, at);
  }
  void classified(const LiveRecord& record, CategoryId category, Sequence at) {
    ended(record, at);
    now_.balance.move(record.category, category, record.bytes);
  }
  void reserve(Bytes reserved) {
    settle();
    now_.reserved = reserved;
    peak_reserved_ = std::max(peak_reserved_, reserved);
  }

  void step_begun(Step step, Sequence at);
  void phase_begun(PhaseId phase, Sequence at);
  void run_reset(Sequence at);
  void module_entered(Sequence at);
  /// Returns the peak of the open module `index`, and closes the module.
  Peak module_left(std::size_t index);

  Peak run_peak() const { return highest(kRun); }
  Peak step_peak() const { return highest(kStep); }
  Peak module_peak(std::size_t index) const { return highest(kFirstModule + index); }
  std::optional<Peak> phase_peak_in_step(PhaseId phase) const { return phase_peak(phase, kPhaseInStep, step_phases_); }
  std::optional<Peak> phase_peak_in_run(PhaseId phase) const { return phase_peak(phase, kPhaseInRun, run_phases_); }
  const std::deque<Peak>& finished_steps() const { return finished_; }

  /// Throws InvalidArgument if the contents of `peak` are no longer kept.
  RetainedPeak retain(const Peak& peak);
  RetainedPeak retain_now(Sequence now);
  /// Throws as `retain`, and InternalError if the contents do not sum to the peak's balance.
  Contents contents(const Peak& peak, const LiveTable& live) const;
  Contents contents_now(const LiveTable& live) const;

  std::size_t history_count() const { return history_.versions().size(); }
  std::size_t memory() const;

 private:
  enum Window : std::size_t { kRun, kStep, kPhaseInStep, kPhaseInRun, kFirstModule };
  using PhasePeaks = std::vector<std::optional<Peak>>;  ///< By phase; the current phase has its peak in marks_.

  void risen(Bytes bytes, Sequence at) {
    if (bytes != 0 && now_.balance.total() > lowest_) {
      now_.at = at;
      rising_ = true;
    }
  }
  void settle() {
    if (rising_) write_risen();
  }
  void ended(const LiveRecord& record, Sequence at);
  void write_risen();
  void find_lowest();
  /// The window's peak, whether or not it is already written.
  const Peak& highest(std::size_t window) const {
    return marks_[window].balance.total() < now_.balance.total() ? now_ : marks_[window];
  }
  std::optional<Peak> phase_peak(PhaseId phase, Window window, const PhasePeaks& others) const;
  void open_windows_at(Sequence at);
  /// Stores the peak of the `previous` phase, and loads the earlier peak of now_.phase, if it has one.
  void change_phase(Peak& mark, PhasePeaks& others, PhaseId previous);
  std::vector<Sequence> kept_instants() const;
  void check_kept(const Peak& peak) const;

  /// The current state of the device. `at` is the last event that raised the total or opened a window.
  Peak now_;
  Bytes peak_reserved_ = 0;
  /// The peak of each window, in the order of Window, then of the module stack. If the total is not rising, each is at
  /// least now_. lowest_ is the least of their totals.
  std::vector<Peak> marks_;
  Bytes lowest_ = 0;
  bool rising_ = false;
  PhasePeaks step_phases_;
  PhasePeaks run_phases_;
  std::deque<Peak> finished_;
  Sequence left_{};  ///< The instant that module_left returned last. Its contents are kept until the next call.
  std::vector<std::weak_ptr<const Peak>> held_;
  std::size_t sweep_held_at_ = 64;
  History history_;
  Limits limits_;
};

}  // namespace plimsoll::ledger
