#include "plimsoll/ledger/defect.h"

#include "plimsoll/base/errors.h"

namespace plimsoll::ledger {
namespace {

std::string quoted(const Names& names, NameKind kind, std::uint64_t index) {
  return "'" + std::string(names[kind].name(index)) + "'";
}

std::string unknown_id(const std::string& what, const Defect& defect) {
  return what + " number " + std::to_string(defect.subject) + " does not belong to this ledger";
}

std::string sentence(const Defect& defect, const Names& names) {
  const std::string allocation = "allocation " + std::to_string(defect.subject);
  const std::string not_alive = defect.freed_before ? ", which was already freed" : ", which is unknown";
  switch (defect.kind) {
    case Defect::Kind::kNone:
      break;
    case Defect::Kind::kFreedNotAlive:
      return "freed " + allocation + not_alive;
    case Defect::Kind::kResizedNotAlive:
      return "resized " + allocation + not_alive;
    case Defect::Kind::kClassifiedNotAlive:
      return "classified " + allocation + not_alive;
    case Defect::Kind::kAllocatedTwice:
      return "allocated " + allocation + ", which is alive; each allocation needs its own id";
    case Defect::Kind::kTotalOverflows:
      return "gave " + allocation + " " + std::to_string(defect.bytes) + " bytes, so the total of " +
             quoted(names, NameKind::kDevice, value(defect.device)) + " would exceed 64 bits";
    case Defect::Kind::kReservedOutOfRange:
      return "changed the reserved bytes of " + quoted(names, NameKind::kDevice, value(defect.device)) + " from " +
             std::to_string(defect.bytes) + " by " + std::to_string(static_cast<std::int64_t>(defect.subject)) +
             "; the result is negative or exceeds 64 bits";
    case Defect::Kind::kLeftNotEntered:
      return "left the module " + quoted(names, NameKind::kOwner, defect.subject) + ", which is not open";
    case Defect::Kind::kTooManyOpenModules:
      return "entered the module " + quoted(names, NameKind::kOwner, defect.subject) + " while " +
             std::to_string(kMaxOpenModules) + " are open; leave each module that was entered";
    case Defect::Kind::kUnknownDevice:
      return unknown_id("device", defect);
    case Defect::Kind::kUnknownCategory:
      return unknown_id("category", defect);
    case Defect::Kind::kUnknownOwner:
      return unknown_id("owner", defect);
    case Defect::Kind::kUnknownPhase:
      return unknown_id("phase", defect);
  }
  throw InternalError("unknown kind of defect: " + std::to_string(static_cast<int>(defect.kind)));
}

}  // namespace

std::string describe(const Defect& defect, const Names& names) {
  return "event " + std::to_string(value(defect.at)) + ": " + sentence(defect, names);
}

}  // namespace plimsoll::ledger
