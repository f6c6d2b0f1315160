#include "plimsoll/ledger/log.h"

#include <algorithm>
#include <limits>
#include <string>

#include "plimsoll/base/errors.h"

/// [Note: the bytes of an event]
/// The first byte has the kind in its low four bits and flags in the others. Numbers follow, seven bits a byte, lowest
/// first; the eighth bit is set if more bytes follow. Signed numbers are folded so that small ones of either sign are
/// short.
///
///     kNamed                   kind of name, length, the name
///     kAllocated               id (distance), bytes, then the values that changed (by flags): device and stream,
///                              category, owner
///     kFreed                   id (distance)
///     kResized                 id (distance), bytes
///     kClassified              id (distance), category, owner
///     kClassifiedKeepingOwner  id (distance), category
///     kSegment                 device, change
///     kEntered                 module, state
///     kLeft                    module
///     kStepBegun, kRunPeakReset
///     kPhase                   phase
///
/// Distances are from the last allocation's id. Sizes are usually multiples of 512 bytes: a flag says so.

namespace plimsoll::ledger {
namespace {

constexpr std::uint8_t kKindMask = 0x0F;
constexpr std::uint8_t kSamePlace = 0x10;
constexpr std::uint8_t kSameCategory = 0x20;
constexpr std::uint8_t kSameOwner = 0x40;
constexpr std::uint8_t kWholeBlocks = 0x80;
constexpr int kBlockBits = 9;
constexpr Bytes kBlock = Bytes{1} << kBlockBits;

constexpr std::uint64_t fold(std::int64_t number) {
  return (static_cast<std::uint64_t>(number) << 1) ^ static_cast<std::uint64_t>(number >> 63);
}
constexpr std::int64_t unfold(std::uint64_t folded) {
  return static_cast<std::int64_t>((folded >> 1) ^ (~(folded & 1) + 1));
}

/// Collects the bytes of one event, which are then appended at once.
class Scratch {
 public:
  explicit Scratch(std::uint8_t first) { buffer_[0] = first; }
  void add(std::uint64_t number) {
    for (; number >= 0x80; number >>= 7) buffer_[size_++] = static_cast<std::uint8_t>(number | 0x80);
    buffer_[size_++] = static_cast<std::uint8_t>(number);
  }
  void add_signed(std::int64_t number) { add(fold(number)); }
  void add_bytes(Bytes bytes) {
    if (bytes % kBlock == 0) {
      buffer_[0] |= kWholeBlocks;
      bytes >>= kBlockBits;
    }
    add(bytes);
  }
  const std::uint8_t* begin() const { return buffer_; }
  const std::uint8_t* end() const { return buffer_ + size_; }

 private:
  std::uint8_t buffer_[64];  // The longest, kAllocated, has one byte and six numbers of at most ten bytes.
  std::size_t size_ = 1;
};

std::int64_t distance(AllocationId from, AllocationId to) { return static_cast<std::int64_t>(value(to) - value(from)); }

void add_allocated(const Event& event, LogContext& context, std::uint8_t flags, Scratch& scratch) {
  scratch.add_signed(distance(context.id, event.id));
  scratch.add_bytes(event.bytes);
  if (!(flags & kSamePlace)) {
    scratch.add(value(event.device));
    scratch.add_signed(value(event.stream));
  }
  if (!(flags & kSameCategory)) scratch.add(value(event.category));
  if (!(flags & kSameOwner)) scratch.add(value(event.owner));
  context = {event.id, event.device, event.stream, event.category, event.owner};
}

}  // namespace

Log::Log(std::vector<std::uint8_t> data) : data_(std::move(data)) {
  LogReader reader(data_);
  for (Event event; reader.next(event);) events_ += event.kind != Event::Kind::kNamed;
  context_ = reader.context();
}

void Log::append(const Event& event) {
  std::uint8_t flags = 0;
  if (event.kind == Event::Kind::kAllocated) {
    if (event.device == context_.device && event.stream == context_.stream) flags |= kSamePlace;
    if (event.category == context_.category) flags |= kSameCategory;
    if (event.owner == context_.owner) flags |= kSameOwner;
  }
  Scratch scratch(static_cast<std::uint8_t>(event.kind) | flags);
  switch (event.kind) {
    case Event::Kind::kNamed:
      scratch.add(static_cast<std::uint8_t>(event.name_kind));
      scratch.add(event.name.size());
      data_.insert(data_.end(), scratch.begin(), scratch.end());
      data_.insert(data_.end(), event.name.begin(), event.name.end());
      return;
    case Event::Kind::kAllocated:
      add_allocated(event, context_, flags, scratch);
      break;
    case Event::Kind::kFreed:
      scratch.add_signed(distance(context_.id, event.id));
      break;
    case Event::Kind::kResized:
      scratch.add_signed(distance(context_.id, event.id));
      scratch.add_bytes(event.bytes);
      break;
    case Event::Kind::kClassified:
    case Event::Kind::kClassifiedKeepingOwner:
      scratch.add_signed(distance(context_.id, event.id));
      scratch.add(value(event.category));
      if (event.kind == Event::Kind::kClassified) scratch.add(value(event.owner));
      break;
    case Event::Kind::kSegment:
      scratch.add(value(event.device));
      scratch.add_signed(event.delta);
      break;
    case Event::Kind::kEntered:
      scratch.add(value(event.owner));
      scratch.add(value(event.state));
      break;
    case Event::Kind::kLeft:
      scratch.add(value(event.owner));
      break;
    case Event::Kind::kPhase:
      scratch.add(value(event.phase));
      break;
    case Event::Kind::kStepBegun:
    case Event::Kind::kRunPeakReset:
      break;
  }
  data_.insert(data_.end(), scratch.begin(), scratch.end());
  ++events_;
}

LogReader::LogReader(std::span<const std::uint8_t> data) : data_(data) {}

void LogReader::fail(const std::string& why) const {
  throw FormatError("the event at byte " + std::to_string(event_at_) + " of the log " + why);
}

std::uint8_t LogReader::byte() {
  if (at_ == data_.size()) fail("is cut off");
  return data_[at_++];
}

std::uint64_t LogReader::varint() {
  std::uint64_t number = 0;
  for (int shift = 0;; shift += 7) {
    const std::uint8_t part = byte();
    if (shift == 63 && part > 1) fail("has a number of more than 64 bits");
    number |= static_cast<std::uint64_t>(part & 0x7F) << shift;
    if (part < 0x80) return number;
  }
}

std::int64_t LogReader::signed_varint() { return unfold(varint()); }

std::uint64_t LogReader::index(NameKind kind) {
  const std::uint64_t index = varint();
  if (index >= names_[kind].count()) {
    fail("uses number " + std::to_string(index) + " of the " + std::string(names_[kind].what()) + ", but the log has " +
         std::to_string(names_[kind].count()) + " so far");
  }
  return index;
}

Bytes LogReader::bytes(std::uint8_t flags) {
  const std::uint64_t number = varint();
  if (!(flags & kWholeBlocks)) return number;
  if (number > std::numeric_limits<Bytes>::max() >> kBlockBits) fail("has a number of more than 64 bits");
  return number << kBlockBits;
}

void LogReader::read_named(Event& event) {
  const std::uint8_t kind = byte();
  if (kind >= kNameKinds) fail("gives a name of the unknown kind " + std::to_string(kind));
  event.name_kind = static_cast<NameKind>(kind);
  const std::uint64_t length = varint();
  if (length > data_.size() - at_) fail("is cut off");
  event.name = {reinterpret_cast<const char*>(data_.data()) + at_, static_cast<std::size_t>(length)};
  at_ += length;
  NameTable& table = names_[event.name_kind];
  if (table.full()) fail("adds a name to a full table of " + std::string(table.what()));
  if (!table.intern(event.name).is_new) fail("gives the name '" + std::string(event.name) + "' a second time");
}

void LogReader::read_allocated(Event& event, std::uint8_t flags) {
  event.bytes = bytes(flags);
  event.device = context_.device;
  event.stream = context_.stream;
  if (!(flags & kSamePlace)) {
    event.device = DeviceId(index(NameKind::kDevice));
    event.stream = StreamId{signed_varint()};
  } else if (value(event.device) >= names_[NameKind::kDevice].count()) {
    fail("refers to the device of the previous event, but it is the first");
  }
  event.category = flags & kSameCategory ? context_.category : CategoryId(index(NameKind::kCategory));
  event.owner = flags & kSameOwner ? context_.owner : OwnerId(index(NameKind::kOwner));
  context_ = {event.id, event.device, event.stream, event.category, event.owner};
}

bool LogReader::next(Event& event) {
  if (at_ == data_.size()) return false;
  event_at_ = at_;
  event = {};
  const std::uint8_t first = byte();
  if ((first & kKindMask) >= Event::kKinds) fail("is of the unknown kind " + std::to_string(first & kKindMask));
  event.kind = static_cast<Event::Kind>(first & kKindMask);
  const std::uint8_t flags = first & ~kKindMask;
  const bool sized = event.kind == Event::Kind::kAllocated || event.kind == Event::Kind::kResized;
  const std::uint8_t allowed = event.kind == Event::Kind::kAllocated ? 0xF0 : sized ? kWholeBlocks : 0;
  if (flags & ~allowed) fail("has flags that its kind does not have");
  if (event.kind >= Event::Kind::kAllocated && event.kind <= Event::Kind::kClassifiedKeepingOwner) {
    event.id = AllocationId{value(context_.id) + static_cast<std::uint64_t>(signed_varint())};
  }
  switch (event.kind) {
    case Event::Kind::kNamed:
      read_named(event);
      break;
    case Event::Kind::kAllocated:
      read_allocated(event, flags);
      break;
    case Event::Kind::kResized:
      event.bytes = bytes(flags);
      break;
    case Event::Kind::kClassified:
    case Event::Kind::kClassifiedKeepingOwner:
      event.category = CategoryId(index(NameKind::kCategory));
      if (event.kind == Event::Kind::kClassified) event.owner = OwnerId(index(NameKind::kOwner));
      break;
    case Event::Kind::kSegment:
      event.device = DeviceId(index(NameKind::kDevice));
      event.delta = signed_varint();
      break;
    case Event::Kind::kEntered: {
      event.owner = OwnerId(index(NameKind::kOwner));
      const std::uint8_t state = byte();
      if (state >= std::size(kModuleStateNames)) fail("has the unknown module state " + std::to_string(state));
      event.state = static_cast<ModuleState>(state);
      break;
    }
    case Event::Kind::kLeft:
      event.owner = OwnerId(index(NameKind::kOwner));
      break;
    case Event::Kind::kPhase:
      event.phase = PhaseId(index(NameKind::kPhase));
      break;
    case Event::Kind::kFreed:
    case Event::Kind::kStepBegun:
    case Event::Kind::kRunPeakReset:
      break;
  }
  return true;
}

Ledger replay(const Log& log, const Ledger::Options& options,
              const std::function<void(const Ledger&, const ModulePeaks&)>& on_left) {
  Ledger ledger(options);
  LogReader reader(log.data());
  for (Event event; reader.next(event);) {
    const ModulePeaks* left = apply(event, ledger);
    if (left != nullptr && on_left) on_left(ledger, *left);
  }
  return ledger;
}

}  // namespace plimsoll::ledger
