#include "plimsoll/ledger/ledger.h"

#include <algorithm>
#include <limits>

#include "plimsoll/base/errors.h"
#include "plimsoll/ledger/log.h"

namespace plimsoll::ledger {

Ledger::Ledger() : Ledger(Options{}) {}

Ledger::Ledger(const Options& options) : options_(options), recently_freed_(kRecentlyFreed, AllocationId{0}) {
  // An id in the wrong slot means that the slot is empty.
  recently_freed_[recent_slot(AllocationId{0})] = AllocationId{1};
}

std::size_t Ledger::intern(NameKind kind, std::string_view name) {
  const auto [index, is_new] = names_[kind].intern(name);
  if (is_new && log_ != nullptr) log_->append({.kind = Event::Kind::kNamed, .name_kind = kind, .name = name});
  return index;
}

DeviceId Ledger::device(std::string_view name) {
  const DeviceId device{static_cast<std::uint16_t>(intern(NameKind::kDevice, name))};
  if (value(device) == books_.size()) {
    books_.emplace_back(device, now_, step_, phase_, open_.size(),
                        Book::Limits{options_.steps, options_.steps_with_contents});
  }
  return device;
}

CategoryId Ledger::category(std::string_view name) { return CategoryId(intern(NameKind::kCategory, name)); }
OwnerId Ledger::owner(std::string_view path) { return OwnerId(intern(NameKind::kOwner, path)); }
PhaseId Ledger::phase_named(std::string_view name) { return PhaseId(intern(NameKind::kPhase, name)); }

Book& Ledger::book(DeviceId device) {
  name(device);  // Throws if the id is not from this ledger.
  return books_[value(device)];
}

const Book& Ledger::book(DeviceId device) const {
  name(device);
  return books_[value(device)];
}

bool Ledger::below(std::size_t count, std::size_t id, Defect::Kind otherwise) noexcept {
  if (id < count) return true;
  note({.kind = otherwise, .subject = id});
  return false;
}

bool Ledger::knows(DeviceId device) noexcept {
  return below(books_.size(), value(device), Defect::Kind::kUnknownDevice);
}
bool Ledger::knows(CategoryId category) noexcept {
  return below(categories(), value(category), Defect::Kind::kUnknownCategory);
}
bool Ledger::knows(OwnerId owner) noexcept { return below(owners(), value(owner), Defect::Kind::kUnknownOwner); }
bool Ledger::knows(PhaseId phase) noexcept { return below(phases(), value(phase), Defect::Kind::kUnknownPhase); }

void Ledger::note(Defect defect) noexcept {
  defect.at = now_;
  if (defects_++ == 0 || first_defect_.kind == Defect::Kind::kNone) first_defect_ = defect;
}

void Ledger::note_not_alive(Defect::Kind kind, AllocationId id) noexcept {
  note({.kind = kind, .subject = value(id), .freed_before = recently_freed_[recent_slot(id)] == id});
}

void Ledger::allocated(AllocationId id, Bytes bytes, DeviceId device, StreamId stream, CategoryId category,
                       OwnerId owner) noexcept {
  if (!knows(device) || !knows(category) || !knows(owner)) return;
  const Sequence at = next();
  if (log_ != nullptr) {
    log_->append({.kind = Event::Kind::kAllocated,
                  .category = category,
                  .device = device,
                  .owner = owner,
                  .id = id,
                  .bytes = bytes,
                  .stream = stream});
  }
  if (live_.find(id) != nullptr) {
    return note({.kind = Defect::Kind::kAllocatedTwice, .subject = value(id), .bytes = bytes, .device = device});
  }
  Book& book = books_[value(device)];
  if (!book.has_room_for(bytes)) {
    return note({.kind = Defect::Kind::kTotalOverflows, .subject = value(id), .bytes = bytes, .device = device});
  }
  live_.insert({id, bytes, at, stream, owner, device, category});
  book.allocated(category, bytes, at);
}

void Ledger::freed(AllocationId id) noexcept {
  const Sequence at = next();
  if (log_ != nullptr) log_->append({.kind = Event::Kind::kFreed, .id = id});
  LiveRecord* record = live_.find(id);
  if (record == nullptr) return note_not_alive(Defect::Kind::kFreedNotAlive, id);
  books_[value(record->device)].freed(*record, at);
  live_.erase(record);
  recently_freed_[recent_slot(id)] = id;
}

void Ledger::resized(AllocationId id, Bytes bytes) noexcept {
  const Sequence at = next();
  if (log_ != nullptr) log_->append({.kind = Event::Kind::kResized, .id = id, .bytes = bytes});
  LiveRecord* record = live_.find(id);
  if (record == nullptr) return note_not_alive(Defect::Kind::kResizedNotAlive, id);
  if (record->bytes == bytes) return;
  Book& book = books_[value(record->device)];
  if (bytes > record->bytes && !book.has_room_for(bytes - record->bytes)) {
    return note(
        {.kind = Defect::Kind::kTotalOverflows, .subject = value(id), .bytes = bytes, .device = record->device});
  }
  book.resized(*record, bytes, at);
  record->bytes = bytes;
  record->begin = at;
}

void Ledger::classified(AllocationId id, CategoryId category, OwnerId owner) noexcept {
  if (!knows(category) || !knows(owner)) return;
  reclassify(id, category, &owner);
}

void Ledger::classified(AllocationId id, CategoryId category) noexcept {
  if (!knows(category)) return;
  reclassify(id, category, nullptr);
}

void Ledger::reclassify(AllocationId id, CategoryId category, const OwnerId* owner) noexcept {
  const Sequence at = next();
  if (log_ != nullptr) {
    log_->append({.kind = owner ? Event::Kind::kClassified : Event::Kind::kClassifiedKeepingOwner,
                  .category = category,
                  .owner = owner ? *owner : kNoOwner,
                  .id = id});
  }
  LiveRecord* record = live_.find(id);
  if (record == nullptr) return note_not_alive(Defect::Kind::kClassifiedNotAlive, id);
  const OwnerId new_owner = owner ? *owner : record->owner;
  if (record->category == category && record->owner == new_owner) return;
  books_[value(record->device)].classified(*record, category, at);
  record->category = category;
  record->owner = new_owner;
  record->begin = at;
}

void Ledger::segment(DeviceId device, std::int64_t delta) noexcept {
  if (!knows(device)) return;
  next();
  if (log_ != nullptr) log_->append({.kind = Event::Kind::kSegment, .device = device, .delta = delta});
  Book& book = books_[value(device)];
  const Bytes change = delta < 0 ? Bytes{0} - static_cast<Bytes>(delta) : static_cast<Bytes>(delta);
  const Bytes room = delta < 0 ? book.reserved() : std::numeric_limits<Bytes>::max() - book.reserved();
  if (change > room) {
    return note({.kind = Defect::Kind::kReservedOutOfRange,
                 .subject = static_cast<std::uint64_t>(delta),
                 .bytes = book.reserved(),
                 .device = device});
  }
  book.reserve(book.reserved() + static_cast<Bytes>(delta));
}

void Ledger::entered(OwnerId module, ModuleState state) noexcept {
  if (!knows(module)) return;
  const Sequence at = next();
  if (log_ != nullptr) log_->append({.kind = Event::Kind::kEntered, .state = state, .owner = module});
  if (open_.size() == kMaxOpenModules) {
    return note({.kind = Defect::Kind::kTooManyOpenModules, .subject = value(module)});
  }
  for (Book& book : books_) book.module_entered(at);
  open_.push_back({module, state, at});
}

const ModulePeaks* Ledger::left(OwnerId module) noexcept {
  if (!knows(module)) return nullptr;
  next();
  if (log_ != nullptr) log_->append({.kind = Event::Kind::kLeft, .owner = module});
  const auto last =
      std::find_if(open_.rbegin(), open_.rend(), [&](const OpenModule& open) { return open.module == module; });
  if (last == open_.rend()) {
    note({.kind = Defect::Kind::kLeftNotEntered, .subject = value(module)});
    return nullptr;
  }
  const auto entry = std::prev(last.base());
  const auto index = static_cast<std::size_t>(entry - open_.begin());
  left_.entry = *entry;
  left_.peaks.resize(books_.size());
  for (std::size_t i = 0; i < books_.size(); ++i) left_.peaks[i] = books_[i].module_left(index);
  open_.erase(entry);
  return &left_;
}

void Ledger::step_begun() noexcept {
  const Sequence at = next();
  if (log_ != nullptr) log_->append({.kind = Event::Kind::kStepBegun});
  ++step_;
  for (Book& book : books_) book.step_begun(step_, at);
}

void Ledger::phase(PhaseId phase) noexcept {
  if (!knows(phase)) return;
  const Sequence at = next();
  if (log_ != nullptr) log_->append({.kind = Event::Kind::kPhase, .phase = phase});
  phase_ = phase;
  for (Book& book : books_) book.phase_begun(phase, at);
}

void Ledger::reset_run_peak() noexcept {
  const Sequence at = next();
  if (log_ != nullptr) log_->append({.kind = Event::Kind::kRunPeakReset});
  for (Book& book : books_) book.run_reset(at);
}

std::optional<Allocation> Ledger::find(AllocationId id) const {
  const LiveRecord* record = live_.find(id);
  if (record == nullptr) return std::nullopt;
  return Allocation{record->id, record->bytes, record->category, record->owner, record->stream};
}

std::size_t Ledger::dropped_steps() const {
  const auto finished = static_cast<std::size_t>(std::max<Step>(step_, 0));
  return finished - std::min(finished, options_.steps);
}

std::optional<std::string> Ledger::take_defect() {
  if (first_defect_.kind == Defect::Kind::kNone) return std::nullopt;
  std::string sentence = describe(first_defect_, names_);
  first_defect_ = {};
  return sentence;
}

void Ledger::record_to(Log* log) {
  if (log != nullptr && (now_ != Sequence{} || !log->data().empty())) {
    throw InvalidArgument("a log must begin with the first event, but " +
                          (now_ != Sequence{} ? "this ledger already has " + std::to_string(value(now_)) + " events"
                                              : "this log already has " + std::to_string(log->events()) + " events") +
                          "; record a new ledger to an empty log");
  }
  log_ = log;
  if (log_ == nullptr) return;
  for (const NameKind kind : {NameKind::kDevice, NameKind::kCategory, NameKind::kOwner, NameKind::kPhase}) {
    for (std::size_t i = built_in_names(kind); i < names_[kind].count(); ++i) {
      log_->append({.kind = Event::Kind::kNamed, .name_kind = kind, .name = names_[kind].name(i)});
    }
  }
}

Ledger::Footprint Ledger::footprint() const {
  Footprint sum{.bytes = sizeof(Ledger) + live_.memory() + recently_freed_.capacity() * sizeof(AllocationId) +
                         open_.capacity() * sizeof(OpenModule) + left_.peaks.capacity() * sizeof(Peak)};
  for (const Book& book : books_) {
    sum.bytes += book.memory();
    sum.versions += book.history_count();
  }
  return sum;
}

}  // namespace plimsoll::ledger
