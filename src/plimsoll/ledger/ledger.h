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

/// Counts allocation events: the owner of each byte on each device, the peaks, and the contents of each peak.
///
/// NOT thread-safe: a caller with several threads locks around every call. Movable, not copyable.
///
/// The ledger gives the ids of devices, categories, owners and phases. The caller gives the ids of allocations.
///
/// Events never throw, because deleters and hooks send them. A misuse (to free an unknown allocation, to leave a module
/// that is not open, …) is stored for take_defect() and does not change the books. An event takes amortised O(1), plus
/// O(devices) if it opens or closes a window (module, step, phase), plus O(open modules) for the first event after a
/// rise. The ledger allocates only to grow what it keeps, in amortised O(1). If the host has no memory left for that,
/// the process ends.
///
/// Memory grows with live allocations, open modules and kept peaks, not with events or steps.
class Ledger {
 public:
  struct Options {
    /// Number of finished steps that keep their peaks.
    std::size_t steps = 256;
    /// Number of the latest steps for which contents() is kept. Each costs memory for the allocations freed since.
    std::size_t steps_with_contents = 16;
  };

  Ledger();
  explicit Ledger(const Options& options);

  // --- Names. The same name has the same id. To ask for an id is not an event.

  /// "cuda:0", "cpu". Throws InvalidArgument beyond kMaxDevices.
  DeviceId device(std::string_view name);
  /// Throws InvalidArgument beyond kMaxCategories.
  CategoryId category(std::string_view name);
  /// The path of a module; "" is kNoOwner.
  OwnerId owner(std::string_view path);
  /// Throws InvalidArgument beyond kMaxPhases.
  PhaseId phase_named(std::string_view name);

  /// Throw InvalidArgument for an id that this ledger did not give. The view is valid for the life of the ledger.
  std::string_view name(DeviceId device) const { return names_[NameKind::kDevice].name(value(device)); }
  std::string_view name(CategoryId category) const { return names_[NameKind::kCategory].name(value(category)); }
  std::string_view name(OwnerId owner) const { return names_[NameKind::kOwner].name(value(owner)); }
  std::string_view name(PhaseId phase) const { return names_[NameKind::kPhase].name(value(phase)); }
  std::size_t devices() const { return books_.size(); }
  std::size_t categories() const { return names_[NameKind::kCategory].count(); }
  /// Includes kNoOwner.
  std::size_t owners() const { return names_[NameKind::kOwner].count(); }
  std::size_t phases() const { return names_[NameKind::kPhase].count(); }

  // --- Events.

  void allocated(AllocationId id, Bytes bytes, DeviceId device, StreamId stream, CategoryId category,
                 OwnerId owner) noexcept;
  void freed(AllocationId id) noexcept;
  /// Sets the size of the allocation; 0 is valid.
  void resized(AllocationId id, Bytes bytes) noexcept;
  void classified(AllocationId id, CategoryId category, OwnerId owner) noexcept;
  /// The owner does not change.
  void classified(AllocationId id, CategoryId category) noexcept;
  /// The device's allocator took a segment (delta > 0) or gave one back (delta < 0): the reserved book.
  void segment(DeviceId device, std::int64_t delta) noexcept;
  /// A module may be open more than once.
  void entered(OwnerId module, ModuleState state) noexcept;
  /// Closes the latest open entry of `module` and returns its peaks, or nullptr if the module is not open. Modules
  /// entered since may still be open. The peaks and their contents are valid until the next left(); use retain() to
  /// keep them longer.
  const ModulePeaks* left(OwnerId module) noexcept;
  /// Ends the current step and starts the next one. The first step is 0.
  void step_begun() noexcept;
  /// Starts a phase. A phase may occur more than once, also within a step.
  void phase(PhaseId phase) noexcept;
  /// The peaks of the run, and of its phases, start again at this instant.
  void reset_run_peak() noexcept;

  // --- The books now.

  const Balance& balance(DeviceId device) const { return book(device).balance(); }
  Bytes reserved(DeviceId device) const { return book(device).reserved(); }
  /// The live allocations.
  Contents live(DeviceId device) const { return book(device).contents_now(live_); }
  /// One live allocation; nothing if it is not alive.
  std::optional<Allocation> find(AllocationId id) const;
  std::size_t live_count() const { return live_.count(); }
  /// The number of the last event.
  Sequence now() const { return now_; }
  Step current_step() const { return step_; }
  PhaseId current_phase() const { return phase_; }
  /// Outermost first.
  const std::vector<OpenModule>& open_modules() const { return open_; }

  // --- Peaks: the first instant of the highest total in each window. A window starts with the balance at its opening.

  Peak run_peak(DeviceId device) const { return book(device).run_peak(); }
  /// The peak of the current step (before step 0: since the beginning).
  Peak step_peak(DeviceId device) const { return book(device).step_peak(); }
  /// The peaks of finished steps, in order; Peak::step is the step's number. Steps before the device was added have no
  /// peak.
  const std::deque<Peak>& finished_steps(DeviceId device) const { return book(device).finished_steps(); }
  /// Number of finished steps whose peaks are no longer kept.
  std::size_t dropped_steps() const;
  /// The peak of all periods of the phase in the current step, or in the run; nothing if the phase did not occur.
  std::optional<Peak> phase_peak(DeviceId device, PhaseId phase) const {
    return book(device).phase_peak_in_step(phase);
  }
  std::optional<Peak> run_phase_peak(DeviceId device, PhaseId phase) const {
    return book(device).phase_peak_in_run(phase);
  }
  /// The peak of open_modules()[index] since it was entered. REQUIRES: index < open_modules().size().
  Peak module_peak(std::size_t index, DeviceId device) const { return book(device).module_peak(index); }
  /// The highest reserved bytes since the run's peak was reset. The instant usually differs from that of run_peak.
  Bytes peak_reserved(DeviceId device) const { return book(device).peak_reserved(); }

  /// The allocations that were alive at a peak from this ledger, with their sizes and classes at that instant. The
  /// peaks above keep their contents until a higher peak replaces them; retained peaks keep them for as long as they
  /// live. Throws InvalidArgument for a peak whose contents are no longer kept.
  Contents contents(const Peak& peak) const { return book(peak.device).contents(peak, live_); }
  /// Keeps the contents of a peak. Throws as `contents`.
  RetainedPeak retain(const Peak& peak) { return book(peak.device).retain(peak); }
  /// Keeps the contents of the current instant.
  RetainedPeak retain_now(DeviceId device) { return book(device).retain_now(now_); }

  // --- Misuse.

  /// A sentence for the first misuse since the last call; nothing if there was no misuse.
  std::optional<std::string> take_defect();
  /// Number of all misuses, taken or not.
  std::uint64_t defects() const { return defects_; }

  // --- The log.

  /// Appends every event from now on to `log`; nullptr stops. `log` must outlive the ledger or the next record_to.
  /// Throws InvalidArgument if the ledger or `log` already has events: such a log could not be replayed.
  void record_to(Log* log);

  // --- The cost of the ledger itself.

  struct Footprint {
    std::size_t bytes = 0;     ///< Host memory, without names and log.
    std::size_t versions = 0;  ///< Ended versions of allocations, kept for a peak.
  };
  Footprint footprint() const;

 private:
  Book& book(DeviceId device);
  const Book& book(DeviceId device) const;
  /// Whether `id` is below `count`; if not, notes the defect `otherwise`.
  bool below(std::size_t count, std::size_t id, Defect::Kind otherwise) noexcept;
  bool knows(DeviceId device) noexcept;
  bool knows(CategoryId category) noexcept;
  bool knows(OwnerId owner) noexcept;
  bool knows(PhaseId phase) noexcept;
  Sequence next() noexcept { return now_ = Sequence{value(now_) + 1}; }
  void reclassify(AllocationId id, CategoryId category, const OwnerId* owner) noexcept;
  void note(Defect defect) noexcept;
  void note_not_alive(Defect::Kind kind, AllocationId id) noexcept;
  std::size_t intern(NameKind kind, std::string_view name);

  /// Size of the table of recent frees, from which the message of a double free knows the allocation.
  static constexpr std::size_t kRecentlyFreed = 1024;
  static std::size_t recent_slot(AllocationId id) { return (value(id) * 0x9E3779B97F4A7C15u) >> 54; }

  Options options_;
  Names names_;
  LiveTable live_;
  std::vector<Book> books_;  ///< Indexed by device.
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
