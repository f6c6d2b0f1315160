#pragma once

#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plimsoll/ledger/contents.h"
#include "plimsoll/ledger/event.h"
#include "plimsoll/ledger/ids.h"
#include "plimsoll/ledger/peak.h"

/// A slow and obvious ledger, the oracle of the property tests. It copies all live allocations whenever a peak rises,
/// and checks every window after every event.
namespace plimsoll::ledger::slow {

/// A device at one instant.
struct State {
  std::uint64_t at = 0;
  Bytes total = 0;
  Bytes reserved = 0;
  Step step = kNoStep;
  PhaseId phase = phases::kOther;
  std::map<AllocationId, Allocation> alive;
};
using Instant = std::shared_ptr<const State>;

struct Window {
  bool is_open = true;
  std::map<DeviceId, Instant> peaks;
};

struct Module {
  OpenModule entry;
  Window window;
};

class SlowLedger {
 public:
  /// Returns the module that the event closed.
  std::optional<Module> apply(const Event& event) {
    if (event.kind == Event::Kind::kNamed) {
      if (event.name_kind == NameKind::kDevice) add_device();
      return std::nullopt;
    }
    ++now;
    std::optional<Module> closed = change(event);
    for (auto& [device, state] : states) {
      state.at = now;
      Instant copy;
      each_window([&](Window& window) {
        Instant& peak = window.peaks[device];
        if (!window.is_open || (peak && peak->total >= state.total)) return;
        if (!copy) copy = std::make_shared<const State>(state);
        peak = copy;
      });
    }
    return closed;
  }

  std::uint64_t now = 0;
  std::uint64_t defects = 0;
  Step step = kNoStep;
  PhaseId phase = phases::kOther;
  std::map<DeviceId, State> states;
  std::map<DeviceId, Bytes> peak_reserved;
  std::map<AllocationId, DeviceId> device_of;
  Window run;
  Window this_step;
  std::map<PhaseId, Window> step_phases{{phases::kOther, {}}};
  std::map<PhaseId, Window> run_phases{{phases::kOther, {}}};
  std::deque<Window> finished;
  std::vector<Module> open;

 private:
  template <typename Visit>
  void each_window(Visit visit) {
    visit(run);
    visit(this_step);
    for (auto& [id, window] : step_phases) visit(window);
    for (auto& [id, window] : run_phases) visit(window);
    for (Module& module : open) visit(module.window);
  }

  void add_device() {
    const auto device = DeviceId(states.size());
    State& state = states[device];
    state = {.at = now, .step = step, .phase = phase, .alive = {}};
    const Instant copy = std::make_shared<const State>(state);
    each_window([&](Window& window) {
      if (window.is_open) window.peaks[device] = copy;
    });
  }

  std::optional<Module> change(const Event& event) {
    switch (event.kind) {
      case Event::Kind::kNamed:
        break;
      case Event::Kind::kAllocated:
        allocate(event);
        break;
      case Event::Kind::kFreed:
      case Event::Kind::kResized:
      case Event::Kind::kClassified:
      case Event::Kind::kClassifiedKeepingOwner:
        change_allocation(event);
        break;
      case Event::Kind::kSegment: {
        State& state = states.at(event.device);
        const Bytes change = event.delta < 0 ? -static_cast<Bytes>(event.delta) : static_cast<Bytes>(event.delta);
        if (event.delta < 0 && change > state.reserved) {
          ++defects;
        } else {
          state.reserved = event.delta < 0 ? state.reserved - change : state.reserved + change;
          peak_reserved[event.device] = std::max(peak_reserved[event.device], state.reserved);
        }
        break;
      }
      case Event::Kind::kEntered:
        if (open.size() < kMaxOpenModules) {
          open.push_back({{event.owner, event.state, Sequence{now}}, {}});
        } else {
          ++defects;
        }
        break;
      case Event::Kind::kLeft:
        for (std::size_t i = open.size(); i-- > 0;) {
          if (open[i].entry.module != event.owner) continue;
          Module closed = open[i];
          open.erase(open.begin() + static_cast<std::ptrdiff_t>(i));
          return closed;
        }
        ++defects;
        break;
      case Event::Kind::kStepBegun:
        if (step != kNoStep) finished.push_back(this_step);
        ++step;
        for (auto& [device, state] : states) state.step = step;
        this_step = {};
        step_phases = {{phase, {}}};
        break;
      case Event::Kind::kPhase:
        step_phases[phase].is_open = run_phases[phase].is_open = false;
        phase = event.phase;
        for (auto& [device, state] : states) state.phase = phase;
        step_phases[phase].is_open = run_phases[phase].is_open = true;
        break;
      case Event::Kind::kRunPeakReset:
        run = {};
        run_phases = {{phase, {}}};
        for (auto& [device, state] : states) peak_reserved[device] = state.reserved;
        break;
    }
    return std::nullopt;
  }

  static bool fits(const State& state, Bytes less, Bytes more) {
    return more <= std::numeric_limits<Bytes>::max() - (state.total - less);
  }

  void allocate(const Event& event) {
    State& state = states.at(event.device);
    if (device_of.contains(event.id) || !fits(state, 0, event.bytes)) {
      ++defects;
      return;
    }
    device_of[event.id] = event.device;
    state.alive[event.id] = {event.id, event.bytes, event.category, event.owner, event.stream};
    state.total += event.bytes;
  }

  void change_allocation(const Event& event) {
    const auto found = device_of.find(event.id);
    if (found == device_of.end()) {
      ++defects;
      return;
    }
    State& state = states.at(found->second);
    Allocation& allocation = state.alive.at(event.id);
    if (event.kind == Event::Kind::kFreed) {
      state.total -= allocation.bytes;
      state.alive.erase(event.id);
      device_of.erase(found);
    } else if (event.kind == Event::Kind::kResized) {
      if (!fits(state, allocation.bytes, event.bytes)) {
        ++defects;
        return;
      }
      state.total = state.total - allocation.bytes + event.bytes;
      allocation.bytes = event.bytes;
    } else {
      allocation.category = event.category;
      if (event.kind == Event::Kind::kClassified) allocation.owner = event.owner;
    }
  }
};

}  // namespace plimsoll::ledger::slow
