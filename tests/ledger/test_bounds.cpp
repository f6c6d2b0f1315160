#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

#include "plimsoll/ledger/ledger.h"

namespace test_bounds {

using namespace plimsoll;
using namespace plimsoll::ledger;

namespace {

constexpr int kModules = 10;
constexpr std::uint64_t kPerModule = 45;

/// A thousand events: ten modules allocate, then everything is freed in backward order. Returns the retained peaks of
/// the modules.
std::map<OwnerId, RetainedPeak> train_step(Ledger& ledger, std::uint64_t& next) {
  std::map<OwnerId, RetainedPeak> peaks;
  ledger.step_begun();
  ledger.phase(ledger::phases::kForward);
  const std::uint64_t first = next;
  for (int i = 0; i < kModules; ++i) {
    const OwnerId module = ledger.owner("layers." + std::to_string(i));
    ledger.entered(module, ModuleState::kPreForward);
    for (std::uint64_t j = 0; j < kPerModule; ++j) {
      const AllocationId id{next++};
      ledger.allocated(id, 512 * (1 + value(id) % 7), DeviceId{0}, StreamId{0}, categories::kTemp, module);
      if (j % 5 == 0) ledger.classified(id, categories::kActivation);
    }
    peaks[module] = ledger.retain(ledger.left(module)->peaks.at(0));
  }
  ledger.phase(ledger::phases::kBackward);
  for (std::uint64_t id = next; id-- > first;) ledger.freed(AllocationId{id});
  return peaks;
}

}  // namespace

TEST_CASE("memory does not grow with steps: a million events over a thousand steps take as much as the first fifty") {
  Ledger ledger;
  const DeviceId device = ledger.device("cuda:0");
  std::uint64_t next = 0;
  std::size_t early = 0;
  std::size_t late = 0;
  std::size_t versions = 0;
  // A tracker also keeps the latest peaks of each module.
  std::map<OwnerId, RetainedPeak> held;
  for (int step = 0; step < 1000; ++step) {
    held = train_step(ledger, next);
    std::size_t& most = step < 50 ? early : late;
    most = std::max(most, ledger.footprint().bytes);
    versions = std::max(versions, ledger.footprint().versions);
  }
  CHECK(value(ledger.now()) > 1'000'000);
  CHECK(ledger.defects() == 0);
  // The balances of the finished steps (more than fifty are kept), and nothing else.
  CHECK(late <= early + 256 * sizeof(Peak));
  // Twice the contents of the kept peaks: 16 finished steps, the current step and the last one.
  CHECK(versions <= 2 * 18 * kModules * kPerModule + 2048);
  for (const auto& [module, peak] : held) CHECK(ledger.contents(*peak).balance() == peak->balance);
  CHECK(ledger.finished_steps(device).size() == 256);
  CHECK(ledger.dropped_steps() == 999 - 256);
}

TEST_CASE("memory does not grow with peaks that are retained and dropped again") {
  Ledger ledger;
  const DeviceId device = ledger.device("cuda:0");
  std::size_t early = 0;
  for (std::uint64_t i = 0; i < 200'000; ++i) {
    ledger.allocated(AllocationId{i}, 512, device, StreamId{0}, categories::kTemp, kNoOwner);
    const RetainedPeak retained = ledger.retain_now(device);
    ledger.freed(AllocationId{i});
    if (i == 10'000) early = ledger.footprint().bytes;
  }
  CHECK(ledger.footprint().bytes <= early);
}

TEST_CASE("a million allocations without a free copy nothing and leave no history") {
  Ledger ledger;
  const DeviceId device = ledger.device("cuda:0");
  for (std::uint64_t i = 0; i < 1'000'000; ++i) {
    ledger.allocated(AllocationId{i}, 512, device, StreamId{0}, categories::kTemp, kNoOwner);
  }
  CHECK(ledger.footprint().versions == 0);
  CHECK(ledger.run_peak(device).balance.total() == 512'000'000);
  CHECK(value(ledger.run_peak(device).at) == 1'000'000);
}

}  // namespace test_bounds
