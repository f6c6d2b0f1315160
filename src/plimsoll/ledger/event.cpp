#include "plimsoll/ledger/event.h"

#include "plimsoll/ledger/ledger.h"

namespace plimsoll::ledger {
namespace {

void give_name(const Event& event, Ledger& ledger) {
  switch (event.name_kind) {
    case NameKind::kDevice:
      ledger.device(event.name);
      break;
    case NameKind::kCategory:
      ledger.category(event.name);
      break;
    case NameKind::kOwner:
      ledger.owner(event.name);
      break;
    case NameKind::kPhase:
      ledger.phase_named(event.name);
      break;
  }
}

}  // namespace

const ModulePeaks* apply(const Event& event, Ledger& ledger) {
  switch (event.kind) {
    case Event::Kind::kNamed:
      give_name(event, ledger);
      break;
    case Event::Kind::kAllocated:
      ledger.allocated(event.id, event.bytes, event.device, event.stream, event.category, event.owner);
      break;
    case Event::Kind::kFreed:
      ledger.freed(event.id);
      break;
    case Event::Kind::kResized:
      ledger.resized(event.id, event.bytes);
      break;
    case Event::Kind::kClassified:
      ledger.classified(event.id, event.category, event.owner);
      break;
    case Event::Kind::kClassifiedKeepingOwner:
      ledger.classified(event.id, event.category);
      break;
    case Event::Kind::kSegment:
      ledger.segment(event.device, event.delta);
      break;
    case Event::Kind::kEntered:
      ledger.entered(event.owner, event.state);
      break;
    case Event::Kind::kLeft:
      return ledger.left(event.owner);
    case Event::Kind::kStepBegun:
      ledger.step_begun();
      break;
    case Event::Kind::kPhase:
      ledger.phase(event.phase);
      break;
    case Event::Kind::kRunPeakReset:
      ledger.reset_run_peak();
      break;
  }
  return nullptr;
}

}  // namespace plimsoll::ledger
