// The cost of an event in the ledger, on one core. The events are those of a training step: a few thousand live
// allocations, modules nested four deep, activations that grow in forward and shrink in backward, temporaries in
// between, and each third allocation classified later. The goal is 10 million events per second.

#include "plimsoll/ledger/ledger.h"

#include <benchmark/benchmark.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "plimsoll/ledger/event.h"
#include "plimsoll/ledger/log.h"

namespace {

using namespace plimsoll;
using namespace plimsoll::ledger;

constexpr int kLayers = 32;
constexpr int kActivations = 60;  // per layer, alive until its backward
constexpr int kTemporaries = 2;   // beside each activation, and beside each that is freed
constexpr int kParameters = 1000;

/// The events of one step. The next step has the same events with other ids.
class Step {
 public:
  explicit Step(Ledger& ledger) : device_(ledger.device("cuda:0")) {
    for (int layer = 0; layer < kLayers; ++layer) {
      for (const char* part : {"", ".attention", ".attention.query"}) {
        modules_.push_back(ledger.owner("layers." + std::to_string(layer) + part));
      }
    }
    root_ = ledger.owner("model");
  }

  std::vector<Event> parameters() {
    for (int i = 0; i < kParameters; ++i) allocate(1 << 20, categories::kParameter, root_);
    return std::move(events_);
  }

  std::vector<Event> events() {
    events_.push_back({.kind = Event::Kind::kStepBegun});
    pass(phases::kForward, ModuleState::kPreForward);
    pass(phases::kBackward, ModuleState::kPreBackward);
    return std::move(events_);
  }

 private:
  void pass(PhaseId phase, ModuleState state) {
    events_.push_back({.kind = Event::Kind::kPhase, .phase = phase});
    events_.push_back({.kind = Event::Kind::kEntered, .state = state, .owner = root_});
    for (int layer = 0; layer < kLayers; ++layer) {
      const OwnerId* modules = &modules_[3 * static_cast<std::size_t>(layer)];
      for (int i = 0; i < 3; ++i)
        events_.push_back({.kind = Event::Kind::kEntered, .state = state, .owner = modules[i]});
      for (int i = 0; i < kActivations; ++i) {
        temporaries(modules[2]);
        phase == phases::kForward ? keep(modules[2]) : drop();
      }
      for (int i = 2; i >= 0; --i) events_.push_back({.kind = Event::Kind::kLeft, .owner = modules[i]});
    }
    events_.push_back({.kind = Event::Kind::kLeft, .owner = root_});
  }

  AllocationId allocate(Bytes bytes, CategoryId category, OwnerId owner) {
    events_.push_back({.kind = Event::Kind::kAllocated,
                       .category = category,
                       .device = device_,
                       .owner = owner,
                       .id = AllocationId{next_},
                       .bytes = bytes});
    return AllocationId{next_++};
  }

  void temporaries(OwnerId owner) {
    AllocationId made[kTemporaries];
    for (AllocationId& id : made) id = allocate(512 * (1 + random_() % 20'000), categories::kTemp, owner);
    for (const AllocationId id : made) events_.push_back({.kind = Event::Kind::kFreed, .id = id});
  }

  void keep(OwnerId owner) {
    kept_.push_back(allocate(512 * (1 + random_() % 20'000), categories::kTemp, owner));
    events_.push_back(
        {.kind = Event::Kind::kClassified, .category = categories::kActivation, .owner = owner, .id = kept_.back()});
  }

  void drop() {
    events_.push_back({.kind = Event::Kind::kFreed, .id = kept_.back()});
    kept_.pop_back();
  }

  std::mt19937_64 random_{7};
  DeviceId device_;
  std::vector<OwnerId> modules_;
  OwnerId root_{};
  std::vector<AllocationId> kept_;
  std::uint64_t next_ = 1;
  std::vector<Event> events_;
};

void step(benchmark::State& state, bool logged) {
  Log log;
  Ledger ledger;
  Step training(ledger);
  if (logged) ledger.record_to(&log);
  for (const Event& event : training.parameters()) apply(event, ledger);
  std::vector<Event> events = training.events();
  std::size_t footprint = 0;
  for (auto _ : state) {
    for (Event& event : events) {
      apply(event, ledger);
      event.id = AllocationId{value(event.id) + events.size()};
    }
    benchmark::DoNotOptimize(ledger.run_peak(DeviceId{0}));
    footprint = ledger.footprint().bytes;
  }
  if (ledger.defects() != 0) state.SkipWithError(ledger.take_defect()->c_str());
  const auto count = static_cast<double>(events.size()) * static_cast<double>(state.iterations());
  state.counters["events/s"] = benchmark::Counter(count, benchmark::Counter::kIsRate);
  state.counters["ledger KiB"] = static_cast<double>(footprint) / 1024;
  if (logged) {
    state.counters["bytes/event"] = static_cast<double>(log.data().size()) / static_cast<double>(log.events());
  }
}

void without_log(benchmark::State& state) { step(state, false); }
BENCHMARK(without_log)->Name("a training step")->Unit(benchmark::kMicrosecond);
void with_log(benchmark::State& state) { step(state, true); }
BENCHMARK(with_log)->Name("a training step, logged")->Unit(benchmark::kMicrosecond);

void live_memory(benchmark::State& state) {
  constexpr std::uint64_t kLive = 100'000;
  double bytes = 0;
  for (auto _ : state) {
    Ledger ledger;
    const DeviceId device = ledger.device("cuda:0");
    const std::size_t empty = ledger.footprint().bytes;
    for (std::uint64_t i = 0; i < kLive; ++i) {
      ledger.allocated(AllocationId{i}, 512, device, StreamId{0}, categories::kOther, kNoOwner);
    }
    bytes = static_cast<double>(ledger.footprint().bytes - empty) / kLive;
  }
  state.counters["bytes/live"] = bytes;
  state.counters["events/s"] = benchmark::Counter(static_cast<double>(kLive) * static_cast<double>(state.iterations()),
                                                  benchmark::Counter::kIsRate);
}
BENCHMARK(live_memory)->Name("100,000 allocations, all alive")->Unit(benchmark::kMicrosecond);

}  // namespace

BENCHMARK_MAIN();
