#include <doctest/doctest.h>

#include <deque>
#include <utility>

#include "ledger/random_events.h"
#include "ledger/slow_ledger.h"
#include "plimsoll/base/errors.h"
#include "plimsoll/ledger/ledger.h"
#include "plimsoll/ledger/log.h"

namespace test_books {

using namespace plimsoll;
using namespace plimsoll::ledger;

namespace {

constexpr Ledger::Options kOptions{.steps = 12, .steps_with_contents = 4};

// Plain comparisons that end in one CHECK: one doctest assertion for each would take longer than the ledger.

bool same_contents(const Contents& contents, const slow::State& state) {
  if (contents.allocations.size() != state.alive.size()) return false;
  auto expected = state.alive.begin();
  for (const Allocation& allocation : contents.allocations) {
    if (!(allocation == expected++->second)) return false;
  }
  return true;
}

bool same_balance(const Balance& balance, const slow::State& state) {
  Balance expected;
  for (const auto& [id, allocation] : state.alive) expected.add(allocation.category, allocation.bytes);
  Bytes sum = 0;
  for (std::size_t i = 0; i < kMaxCategories; ++i) sum += balance[CategoryId(i)];
  return balance == expected && sum == state.total && balance.total() == state.total;
}

bool same_peak(const Peak& peak, DeviceId device, const slow::State& state) {
  return peak.device == device && value(peak.at) == state.at && same_balance(peak.balance, state) &&
         peak.reserved == state.reserved && peak.step == state.step && peak.phase == state.phase;
}

bool same_owners(const Contents& contents) {
  std::map<std::pair<OwnerId, CategoryId>, Bytes> expected;
  for (const Allocation& allocation : contents.allocations) {
    expected[{allocation.owner, allocation.category}] += allocation.bytes;
  }
  std::size_t owners = 0;
  std::optional<OwnerId> last;
  for (const auto& [key, bytes] : expected) owners += std::exchange(last, key.first) != key.first;
  const std::vector<OwnerBalance> by_owner = contents.by_owner();
  Bytes left = contents.balance().total();
  for (const OwnerBalance& owner : by_owner) {
    for (std::size_t i = 0; i < kMaxCategories; ++i) {
      const Bytes bytes = owner.balance[CategoryId(i)];
      const auto found = expected.find({owner.owner, CategoryId(i)});
      if (bytes != (found == expected.end() ? 0 : found->second)) return false;
    }
    left -= owner.balance.total();
  }
  return left == 0 && by_owner.size() == owners;
}

bool same(const Ledger& ledger, const Peak& peak, DeviceId device, const slow::State& state) {
  if (!same_peak(peak, device, state)) return false;
  const Contents contents = ledger.contents(peak);
  return same_contents(contents, state) && same_owners(contents);
}

bool same_phase(const Ledger& ledger, const std::optional<Peak>& peak, DeviceId device, PhaseId phase,
                const std::map<PhaseId, slow::Window>& windows) {
  const auto window = windows.find(phase);
  const bool expected =
      window != windows.end() && window->second.peaks.contains(device) && window->second.peaks.at(device) != nullptr;
  if (peak.has_value() != expected) return false;
  return !expected || same(ledger, *peak, device, *window->second.peaks.at(device));
}

bool same_steps(const Ledger& ledger, DeviceId device, const slow::SlowLedger& oracle) {
  const std::deque<Peak>& steps = ledger.finished_steps(device);
  std::vector<slow::Instant> expected;
  for (const slow::Window& step : oracle.finished) {
    if (step.peaks.contains(device)) expected.push_back(step.peaks.at(device));
  }
  if (steps.size() != std::min(expected.size(), kOptions.steps)) return false;
  if (ledger.dropped_steps() != oracle.finished.size() - std::min(oracle.finished.size(), kOptions.steps)) return false;
  for (std::size_t back = 1; back <= steps.size(); ++back) {
    const Peak& peak = steps[steps.size() - back];
    const slow::State& state = *expected[expected.size() - back];
    if (!same_peak(peak, device, state)) return false;
    try {
      if (!same_contents(ledger.contents(peak), state)) return false;
    } catch (const InvalidArgument&) {
      if (back <= kOptions.steps_with_contents) return false;
    }
  }
  return true;
}

bool same_books(const Ledger& ledger, const slow::SlowLedger& oracle) {
  if (value(ledger.now()) != oracle.now || ledger.defects() != oracle.defects || ledger.current_step() != oracle.step ||
      ledger.current_phase() != oracle.phase || ledger.live_count() != oracle.device_of.size() ||
      ledger.devices() != oracle.states.size() || ledger.open_modules().size() != oracle.open.size()) {
    return false;
  }
  for (const auto& [device, state] : oracle.states) {
    if (!same_balance(ledger.balance(device), state) || ledger.reserved(device) != state.reserved) return false;
    const auto reserved = oracle.peak_reserved.find(device);
    if (ledger.peak_reserved(device) != (reserved == oracle.peak_reserved.end() ? 0 : reserved->second)) return false;
    if (!same_contents(ledger.live(device), state)) return false;
    if (!same(ledger, ledger.run_peak(device), device, *oracle.run.peaks.at(device))) return false;
    if (!same(ledger, ledger.step_peak(device), device, *oracle.this_step.peaks.at(device))) return false;
    for (std::size_t i = 0; i < ledger.phases(); ++i) {
      const auto phase = PhaseId(i);
      if (!same_phase(ledger, ledger.phase_peak(device, phase), device, phase, oracle.step_phases)) return false;
      if (!same_phase(ledger, ledger.run_phase_peak(device, phase), device, phase, oracle.run_phases)) return false;
    }
    for (std::size_t i = 0; i < oracle.open.size(); ++i) {
      if (!(ledger.open_modules()[i] == oracle.open[i].entry)) return false;
      if (!same(ledger, ledger.module_peak(i, device), device, *oracle.open[i].window.peaks.at(device))) return false;
    }
    if (!same_steps(ledger, device, oracle)) return false;
  }
  return true;
}

bool same_module(const Ledger& ledger, const ModulePeaks& left, const slow::Module& module) {
  if (!(left.entry == module.entry) || left.peaks.size() != ledger.devices()) return false;
  for (const Peak& peak : left.peaks) {
    if (!same(ledger, peak, peak.device, *module.window.peaks.at(peak.device))) return false;
  }
  return true;
}

/// Peaks of all kinds, retained over thousands of events.
struct Held {
  RetainedPeak peak;
  slow::Instant expected;
};

}  // namespace

TEST_CASE("live books, replayed books and a slow obvious ledger agree after 100,000 random events") {
  for (const std::uint64_t seed : {1, 2, 3, 4}) {
    CAPTURE(seed);
    RandomEvents events(seed);
    slow::SlowLedger oracle;
    Log log;
    Ledger ledger(kOptions);
    ledger.record_to(&log);
    std::deque<slow::Module> modules;
    std::deque<Held> held;
    for (int i = 0; i < 100'000; ++i) {
      CAPTURE(i);
      const Event event = events.next();
      const std::optional<slow::Module> expected = oracle.apply(event);
      const ModulePeaks* left = apply(event, ledger);
      REQUIRE((left != nullptr) == expected.has_value());
      if (left != nullptr) {
        REQUIRE(same_module(ledger, *left, *expected));
        modules.push_back(*expected);
        for (const Peak& peak : left->peaks) {
          held.push_back({ledger.retain(peak), expected->window.peaks.at(peak.device)});
        }
      }
      if (i % 701 == 700) {
        const auto device = DeviceId(i % oracle.states.size());
        held.push_back({ledger.retain_now(device), std::make_shared<slow::State>(oracle.states.at(device))});
        held.push_back({ledger.retain(ledger.run_peak(device)), oracle.run.peaks.at(device)});
        held.push_back({ledger.retain(ledger.step_peak(device)), oracle.this_step.peaks.at(device)});
      }
      if (i % 1009 == 1008) {
        REQUIRE(same_books(ledger, oracle));
        for (const Held& one : held) REQUIRE(same(ledger, *one.peak, one.peak->device, *one.expected));
        while (held.size() > 60) held.pop_front();
      }
    }
    CHECK(oracle.finished.size() > 2 * kOptions.steps);
    CHECK(modules.size() > 1000);
    CHECK(ledger.defects() > 1000);

    const Ledger replayed_quietly = replay(log, kOptions);
    CHECK(same_books(replayed_quietly, oracle));
    Ledger replayed = replay(log, kOptions, [&](const Ledger& so_far, const ModulePeaks& left) {
      REQUIRE_FALSE(modules.empty());
      REQUIRE(same_module(so_far, left, modules.front()));
      modules.pop_front();
    });
    CHECK(modules.empty());
    CHECK(same_books(replayed, oracle));
    CHECK(log.events() == value(ledger.now()));
    const auto defect = ledger.take_defect();
    CHECK(defect.has_value());
    CHECK(replayed.take_defect() == defect);
    for (std::size_t i = 0; i < ledger.owners(); ++i) CHECK(replayed.name(OwnerId(i)) == ledger.name(OwnerId(i)));
  }
}

TEST_CASE("the log of a replay is the log that was replayed") {
  RandomEvents events(11);
  Log log;
  Ledger ledger;
  ledger.record_to(&log);
  for (int i = 0; i < 20'000; ++i) apply(events.next(), ledger);
  Log again;
  Ledger replayed;
  replayed.record_to(&again);
  LogReader reader(log.data());
  for (Event event; reader.next(event);) apply(event, replayed);
  CHECK(std::equal(log.data().begin(), log.data().end(), again.data().begin(), again.data().end()));
}

}  // namespace test_books
