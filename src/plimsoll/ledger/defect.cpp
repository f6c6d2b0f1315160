#include "plimsoll/ledger/defect.h"

#include "plimsoll/base/errors.h"

namespace plimsoll::ledger {
namespace {

std::string quoted(const Names& names, NameKind kind, std::uint64_t index) {
  return "'" + std::string(names[kind].name(index)) + "'";
}

std::string stranger(const std::string& what, const Defect& defect) {
  return what + " number " + std::to_string(defect.subject) + " was never given by this ledger";
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
      return "allocated " + allocation + ", which is alive; every allocation needs an id of its own";
    case Defect::Kind::kTotalOverflows:
      return "gave " + allocation + " " + std::to_string(defect.bytes) + " bytes, and with them " +
             quoted(names, NameKind::kDevice, value(defect.device)) + " would hold more than a ledger can count";
    case Defect::Kind::kReservedOutOfRange:
      return "changed the reserved bytes of " + quoted(names, NameKind::kDevice, value(defect.device)) + " from " +
             std::to_string(defect.bytes) + " by " + std::to_string(static_cast<std::int64_t>(defect.subject)) +
             ", which leaves less than none or more than a ledger can count";
    case Defect::Kind::kLeftNotEntered:
      return "left the module " + quoted(names, NameKind::kOwner, defect.subject) + ", which is not entered";
    case Defect::Kind::kTooManyOpenModules:
      return "entered the module " + quoted(names, NameKind::kOwner, defect.subject) + " while " +
             std::to_string(kMaxOpenModules) + " are open; leave what was entered";
    case Defect::Kind::kUnknownDevice:
      return stranger("device", defect);
    case Defect::Kind::kUnknownCategory:
      return stranger("category", defect);
    case Defect::Kind::kUnknownOwner:
      return stranger("owner", defect);
    case Defect::Kind::kUnknownPhase:
      return stranger("phase", defect);
  }
  throw InternalError("there is no defect of kind " + std::to_string(static_cast<int>(defect.kind)));
}

}  // namespace

std::string describe(const Defect& defect, const Names& names) {
  return "event " + std::to_string(value(defect.at)) + ": " + sentence(defect, names);
}

}  // namespace plimsoll::ledger
