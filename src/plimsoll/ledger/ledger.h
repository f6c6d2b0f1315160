#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/bytes.h"
#include "plimsoll/ledger/balance.h"
#include "plimsoll/ledger/book.h"
#include "plimsoll/ledger/contents.h"
#include "plimsoll/ledger/defect.h"
#include "plimsoll/ledger/ids.h"
#include "plimsoll/ledger/live_table.h"
#include "plimsoll/ledger/names.h"
#include "plimsoll/ledger/peak.h"

namespace plimsoll::ledger {

class Log;

/// Events in, books out: who owns what on every device, how high it stood, and what it consisted of then.
///
/// NOT thread-safe: whoever hears of events on several threads locks around every call. Movable, not copyable.
///
/// Ids of devices, categories, owners and phases come from the functions that give them; allocation ids from the
/// caller.
///
/// Events never throw: they come from deleters and hooks. A misuse (freeing what is not alive, leaving what was not
/// entered, …) is stored for take_defect() and leaves the books as they were. Each event takes O(1) amortised, those
/// that open or close a window (modules, steps, phases) O(devices) besides, and the one after a rise O(open modules).
/// Nothing is allocated beyond the amortised growth of what is kept; where the host has no memory left for that, the
/// process ends.
///
/// Memory grows with what is alive, with open modules and with the peaks that are kept; not with events or steps.
class Ledger {
 public:
  struct Options {
    /// How many finished steps keep their peaks.
    std::size_t steps = 256;
    /// For how many of these, the latest, contents() can still be asked. Each costs what has been freed since.
    std::size_t steps_with_contents = 16;
  };

  Ledger();
  explicit Ledger(const Options& options);

  // --- Names. The same name gives the same id. Asking for an id is no event.

  /// "cuda:0", "cpu". Throws InvalidArgument beyond kMaxDevices.
  DeviceId device(std::string_view name);
  /// Throws InvalidArgument beyond kMaxCategories.
  CategoryId category(std::string_view name);
  /// The path of a module; "" is kNoOwner.
  OwnerId owner(std::string_view path);
  /// Throws InvalidArgument beyond kMaxPhases.
  PhaseId phase_named(std::string_view name);

  /// Throw InvalidArgument for an id that this ledger has not given. A view holds as long as the ledger.
  std::string_view name(DeviceId device) const { return names_[NameKind::kDevice].name(value(device)); }
  std::string_view name(CategoryId category) const { return names_[NameKind::kCategory].name(value(category)); }
  std::string_view name(OwnerId owner) const { return names_[NameKind::kOwner].name(value(owner)); }
  std::string_view name(PhaseId phase) const { return names_[NameKind::kPhase].name(value(phase)); }
  std::size_t devices() const { return books_.size(); }
  std::size_t categories() const { return names_[NameKind::kCategory].count(); }
  /// With kNoOwner.
  std::size_t owners() const { return names_[NameKind::kOwner].count(); }
  std::size_t phases() const { return names_[NameKind::kPhase].count(); }

  // --- Events.

  void allocated(AllocationId id, Bytes bytes, DeviceId device, StreamId stream, CategoryId category,
                 OwnerId owner) noexcept;
  void freed(AllocationId id) noexcept;
  /// The same allocation is that large from now on; 0 is a size like any other.
  void resized(AllocationId id, Bytes bytes) noexcept;
  void classified(AllocationId id, CategoryId category, OwnerId owner) noexcept;
  /// The owner stays.
  void classified(AllocationId id, CategoryId category) noexcept;
  /// The device's allocator took a segment (delta > 0) or gave one back (delta < 0): the reserved book.
  void segment(DeviceId device, std::int64_t delta) noexcept;
  /// A module may be open any number of times.
  void entered(OwnerId module, ModuleState state) noexcept;
  /// Closes the latest open entry of that module, whatever was entered since, and gives its peaks. They hold until the
  /// next left(), and so do their contents: what is needed longer is retained. nullptr where the module is not open.
  const ModulePeaks* left(OwnerId module) noexcept;
  /// The next step begins, and with it the current one ends. The first is step 0.
  void step_begun() noexcept;
  /// The phase changes; it may come back, within a step too.
  void phase(PhaseId phase) noexcept;
  /// The run's peaks (also those of its phases) count from this instant on.
  void reset_run_peak() noexcept;

  // --- The books now.

  const Balance& balance(DeviceId device) const { return book(device).balance(); }
  Bytes reserved(DeviceId device) const { return book(device).reserved(); }
  /// What is alive now.
  Contents live(DeviceId device) const { return book(device).contents_now(live_); }
  /// As `live`, one allocation; nothing where it is not alive.
  std::optional<Allocation> find(AllocationId id) const;
  std::size_t live_count() const { return live_.count(); }
  /// The number of the last event.
  Sequence now() const { return now_; }
  Step current_step() const { return step_; }
  PhaseId current_phase() const { return phase_; }
  /// Outermost first.
  const std::vector<OpenModule>& open_modules() const { return open_; }

  // --- Peaks. The first instant of the highest total in each window. A window begins with the balance it finds.

  Peak run_peak(DeviceId device) const { return book(device).run_peak(); }
  /// Of the current step (before the first: since the beginning).
  Peak step_peak(DeviceId device) const { return book(device).step_peak(); }
  /// Of the steps that are over, in their order; Peak::step says which. Steps before the device was known have none.
  const std::deque<Peak>& finished_steps(DeviceId device) const { return book(device).finished_steps(); }
  /// How many finished steps are no longer among these.
  std::size_t dropped_steps() const;
  /// Over all times that phase had in the current step, in the run; nothing where it had none.
  std::optional<Peak> phase_peak(DeviceId device, PhaseId phase) const {
    return book(device).phase_peak_in_step(phase);
  }
  std::optional<Peak> run_phase_peak(DeviceId device, PhaseId phase) const {
    return book(device).phase_peak_in_run(phase);
  }
  /// Of open_modules()[index], since it was entered. REQUIRES: index < open_modules().size().
  Peak module_peak(std::size_t index, DeviceId device) const { return book(device).module_peak(index); }
  /// The most that was ever reserved since the run's peak was reset; at another instant, as a rule, than run_peak.
  Bytes peak_reserved(DeviceId device) const { return book(device).peak_reserved(); }

  /// What was alive at a peak that this ledger gave, each with the size and class it had then. The peaks above can be
  /// asked for until they are superseded, retained ones as long as they are held.
  /// Throws InvalidArgument for a peak whose contents are no longer kept.
  Contents contents(const Peak& peak) const { return book(peak.device).contents(peak, live_); }
  /// Keeps the contents of a peak. Throws as `contents`.
  RetainedPeak retain(const Peak& peak) { return book(peak.device).retain(peak); }
  /// Keeps this very instant.
  RetainedPeak retain_now(DeviceId device) { return book(device).retain_now(now_); }

  // --- Misuse.

  /// The first misuse since the last call, in words; nothing where there was none.
  std::optional<std::string> take_defect();
  /// How many there were in all, taken or not.
  std::uint64_t defects() const { return defects_; }

  // --- The log.

  /// Every event from now on is appended to `log`, which must outlive the ledger or the next record_to; nullptr ends
  /// it. Throws InvalidArgument where there have been events already, or where `log` holds some: it would not replay.
  void record_to(Log* log);

  // --- What the ledger itself costs.

  struct Footprint {
    std::size_t bytes = 0;     ///< Of the host's memory, without names and log.
    std::size_t versions = 0;  ///< Allocations that are no longer as they were, kept for some peak.
  };
  Footprint footprint() const;

 private:
  Book& book(DeviceId device);
  const Book& book(DeviceId device) const;
  bool knows(DeviceId device) noexcept;
  bool knows(CategoryId category) noexcept;
  bool knows(OwnerId owner) noexcept;
  bool knows(PhaseId phase) noexcept;
  Sequence next() noexcept { return now_ = Sequence{value(now_) + 1}; }
  void reclassify(AllocationId id, CategoryId category, const OwnerId* owner) noexcept;
  void note(Defect defect) noexcept;
  void note_not_alive(Defect::Kind kind, AllocationId id) noexcept;
  std::size_t intern(NameKind kind, std::string_view name);

  /// Remembers some of the latest frees, so that a second one can be called by its name.
  static constexpr std::size_t kRecentlyFreed = 1024;
  static std::size_t recent_slot(AllocationId id) { return (value(id) * 0x9E3779B97F4A7C15u) >> 54; }

  Options options_;
  Names names_;
  LiveTable live_;
  std::vector<Book> books_;  ///< By device.
  std::vector<OpenModule> open_;
  ModulePeaks left_;
  Sequence now_{};
  Step step_ = kNoStep;
  PhaseId phase_ = phases::kOther;
  Defect first_defect_;
  std::uint64_t defects_ = 0;
  Log* log_ = nullptr;
  std::vector<AllocationId> recently_freed_;
};

}  // namespace plimsoll::ledger
