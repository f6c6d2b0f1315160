#include <doctest/doctest.h>

#include <cstdint>
#include <utility>

#include "plimsoll/base/errors.h"
#include "plimsoll/ledger/ledger.h"

namespace test_peaks {

using namespace plimsoll;
using namespace plimsoll::ledger;

namespace {

struct OneDevice {
  Ledger ledger;
  DeviceId device = ledger.device("cuda:0");
  OwnerId layer = ledger.owner("layers.0");
  OwnerId head = ledger.owner("head");

  void allocate(std::uint64_t id, Bytes bytes, CategoryId category = categories::kActivation) {
    ledger.allocated(AllocationId{id}, bytes, device, StreamId{3}, category, layer);
  }
  void free(std::uint64_t id) { ledger.freed(AllocationId{id}); }
  void enter(OwnerId module) { ledger.entered(module, ModuleState::kPreForward); }
  Bytes leave(OwnerId module) { return ledger.left(module)->peaks.at(0).balance.total(); }
  Bytes run() const { return ledger.run_peak(device).balance.total(); }
};

}  // namespace

TEST_CASE_FIXTURE(OneDevice, "a freed allocation stays in the peak it belonged to, with its class at that instant") {
  allocate(1, 100);
  allocate(2, 50, categories::kTemp);
  ledger.classified(AllocationId{2}, categories::kGradient, head);
  ledger.resized(AllocationId{1}, 10);
  free(2);
  const Contents contents = ledger.contents(ledger.run_peak(device));
  CHECK(contents.allocations ==
        std::vector<Allocation>{{AllocationId{1}, 100, categories::kActivation, layer, StreamId{3}},
                                {AllocationId{2}, 50, categories::kTemp, layer, StreamId{3}}});
  CHECK(contents.balance() == ledger.run_peak(device).balance);
  CHECK(ledger.balance(device).total() == 10);
  CHECK(ledger.find(AllocationId{1}) == Allocation{AllocationId{1}, 10, categories::kActivation, layer, StreamId{3}});
  CHECK_FALSE(ledger.find(AllocationId{2}).has_value());
}

TEST_CASE_FIXTURE(OneDevice, "if several instants are equally high, the first is the peak") {
  allocate(1, 100);
  const Sequence first = ledger.now();
  free(1);
  allocate(2, 100);
  allocate(3, 0);
  CHECK(ledger.run_peak(device).at == first);
  CHECK(ledger.contents(ledger.run_peak(device)).allocations.size() == 1);
}

TEST_CASE_FIXTURE(OneDevice, "a new class at the peak changes the balance, not the peak") {
  allocate(1, 100, categories::kTemp);
  ledger.classified(AllocationId{1}, categories::kOptstate);
  CHECK(ledger.balance(device)[categories::kOptstate] == 100);
  CHECK(ledger.balance(device)[categories::kTemp] == 0);
  CHECK(ledger.run_peak(device).balance[categories::kTemp] == 100);
  CHECK(ledger.find(AllocationId{1})->owner == layer);
}

TEST_CASE_FIXTURE(OneDevice, "a peak has the reserved bytes, the step and the phase of its instant") {
  ledger.segment(device, 4096);
  ledger.step_begun();
  ledger.step_begun();
  ledger.phase(ledger::phases::kBackward);
  allocate(1, 100);
  ledger.segment(device, 4096);
  ledger.phase(ledger::phases::kOptimizer);
  ledger.step_begun();
  ledger.segment(device, -6000);
  const Peak peak = ledger.run_peak(device);
  CHECK(peak.reserved == 4096);
  CHECK(peak.step == 1);
  CHECK(peak.phase == ledger::phases::kBackward);
  CHECK(ledger.reserved(device) == 2192);
  CHECK(ledger.peak_reserved(device) == 8192);
  ledger.reset_run_peak();
  CHECK(ledger.peak_reserved(device) == 2192);
}

TEST_CASE_FIXTURE(OneDevice, "each run of a module has its own peak, also if the module calls itself") {
  enter(layer);
  allocate(1, 100);
  free(1);
  CHECK(leave(layer) == 100);
  enter(layer);
  allocate(2, 10);
  enter(layer);
  allocate(3, 20);
  free(3);
  CHECK(leave(layer) == 30);
  allocate(4, 5);
  CHECK(leave(layer) == 30);
  CHECK(ledger.open_modules().empty());
}

TEST_CASE_FIXTURE(OneDevice, "modules may close in any order") {
  enter(layer);
  allocate(1, 100);
  free(1);
  enter(head);
  allocate(2, 10);
  CHECK(leave(layer) == 100);
  allocate(3, 20);
  CHECK(ledger.module_peak(0, device).balance.total() == 30);
  CHECK(leave(head) == 30);
}

TEST_CASE_FIXTURE(OneDevice, "the peak of a module starts at the balance at its entry") {
  allocate(1, 100);
  enter(layer);
  const Sequence entered = ledger.now();
  free(1);
  const ModulePeaks* left = ledger.left(layer);
  CHECK(left->entry == OpenModule{layer, ModuleState::kPreForward, entered});
  CHECK(left->peaks.at(0).balance.total() == 100);
  CHECK(left->peaks.at(0).at == entered);
}

TEST_CASE_FIXTURE(OneDevice, "each step has its own peaks; earlier peaks belong to no step") {
  allocate(1, 1000);
  free(1);
  CHECK(ledger.current_step() == kNoStep);
  for (std::uint64_t step = 0; step < 3; ++step) {
    ledger.step_begun();
    allocate(2, 10 * (step + 1));
    free(2);
  }
  CHECK(ledger.current_step() == 2);
  CHECK(ledger.step_peak(device).balance.total() == 30);
  const std::deque<Peak>& finished = ledger.finished_steps(device);
  REQUIRE(finished.size() == 2);
  CHECK(finished[0].step == 0);
  CHECK(finished[0].balance.total() == 10);
  CHECK(finished[1].step == 1);
  CHECK(finished[1].balance.total() == 20);
  CHECK(ledger.contents(finished[1]).allocations.at(0).bytes == 20);
  CHECK(run() == 1000);
}

TEST_CASE("the options limit the number of kept steps, and dropped steps are counted") {
  Ledger ledger({.steps = 3, .steps_with_contents = 1});
  const DeviceId device = ledger.device("cpu");
  for (int step = 0; step < 10; ++step) ledger.step_begun();
  REQUIRE(ledger.finished_steps(device).size() == 3);
  CHECK(ledger.finished_steps(device).front().step == 6);
  CHECK(ledger.dropped_steps() == 6);
}

TEST_CASE_FIXTURE(OneDevice, "a phase that occurs again continues its peak; a new step starts a new peak") {
  using namespace plimsoll::ledger::phases;
  CHECK_FALSE(ledger.phase_peak(device, kForward).has_value());
  ledger.step_begun();
  ledger.phase(kForward);
  allocate(1, 100);
  free(1);
  ledger.phase(kBackward);
  allocate(2, 500);
  free(2);
  ledger.phase(kForward);
  allocate(3, 70);
  CHECK(ledger.phase_peak(device, kForward)->balance.total() == 100);
  CHECK(ledger.phase_peak(device, kBackward)->balance.total() == 500);
  ledger.step_begun();
  CHECK(ledger.phase_peak(device, kForward)->balance.total() == 70);
  CHECK_FALSE(ledger.phase_peak(device, kBackward).has_value());
  CHECK(ledger.run_phase_peak(device, kForward)->balance.total() == 100);
  CHECK(ledger.run_phase_peak(device, kBackward)->balance.total() == 500);
  CHECK(ledger.contents(*ledger.run_phase_peak(device, kBackward)).allocations.at(0).id == AllocationId{2});
  ledger.reset_run_peak();
  CHECK(ledger.run_phase_peak(device, kForward)->balance.total() == 70);
  CHECK_FALSE(ledger.run_phase_peak(device, kBackward).has_value());
}

TEST_CASE_FIXTURE(OneDevice, "each device has its own book, and an allocation knows its device") {
  const DeviceId cpu = ledger.device("cpu");
  allocate(1, 100);
  ledger.allocated(AllocationId{2}, 7, cpu, StreamId{0}, categories::kOther, kNoOwner);
  free(2);
  CHECK(ledger.balance(device).total() == 100);
  CHECK(ledger.balance(cpu).total() == 0);
  CHECK(ledger.run_peak(cpu).balance.total() == 7);
  CHECK(ledger.live(cpu).allocations.empty());
  CHECK(ledger.live(device).allocations.size() == 1);
}

TEST_CASE_FIXTURE(OneDevice, "after everything is freed all categories are zero") {
  for (std::uint64_t id = 0; id < 800; ++id) allocate(id, 100 + id, CategoryId(id % 8));
  for (std::uint64_t id = 0; id < 800; ++id) free(id);
  CHECK(ledger.balance(device) == Balance{});
  CHECK(ledger.live_count() == 0);
}

TEST_CASE_FIXTURE(OneDevice, "a retained peak keeps its contents, also after a higher peak replaced it") {
  allocate(1, 100);
  RetainedPeak retained = ledger.retain(ledger.run_peak(device));
  const Peak forgotten = *retained;
  RetainedPeak copy = retained;
  auto churn = [&, next = std::uint64_t{10}]() mutable {
    for (int i = 0; i < 10'000; ++i, ++next) {
      enter(head);
      allocate(next, 200 + next);
      free(next);
      leave(head);
    }
  };
  free(1);
  churn();
  retained.reset();
  churn();
  CHECK(ledger.contents(*copy).allocations.at(0).id == AllocationId{1});
  CHECK(ledger.contents(forgotten).allocations.size() == 1);
  copy.reset();
  churn();
  CHECK_THROWS_WITH_AS(
      ledger.contents(forgotten),
      "the contents after event 1 are no longer kept: a higher peak replaced them, or their step is too old; "
      "retain a peak to keep its contents",
      InvalidArgument);
  CHECK_THROWS_AS(ledger.retain(forgotten), InvalidArgument);
}

TEST_CASE_FIXTURE(OneDevice, "the peaks of a module are valid until the next module is left") {
  enter(head);
  allocate(1, 100);
  free(1);
  const ModulePeaks* left = ledger.left(head);
  for (std::uint64_t id = 10; id < 10'000; ++id) {
    ledger.phase(PhaseId(id % 4));
    allocate(id, 200);
    free(id);
  }
  CHECK(ledger.contents(left->peaks.at(0)).allocations.at(0).id == AllocationId{1});
}

TEST_CASE_FIXTURE(OneDevice, "a retained peak may outlive its ledger") {
  allocate(1, 100);
  RetainedPeak retained;
  {
    Ledger moved = std::move(ledger);
    retained = moved.retain_now(device);
  }
  CHECK(retained->balance.total() == 100);
}

}  // namespace test_peaks
