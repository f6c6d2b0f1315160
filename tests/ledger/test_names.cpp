#include <doctest/doctest.h>

#include <string>
#include <utility>

#include "plimsoll/base/errors.h"
#include "plimsoll/ledger/ledger.h"

namespace test_names {

using namespace plimsoll;
using namespace plimsoll::ledger;

TEST_CASE("the built-in categories, phases and module states have torch's names and fixed ids") {
  Ledger ledger;
  CHECK(ledger.name(categories::kParameter) == "Parameter");
  CHECK(ledger.name(categories::kBuffer) == "Buffer");
  CHECK(ledger.name(categories::kGradient) == "Gradient");
  CHECK(ledger.name(categories::kActivation) == "Activation");
  CHECK(ledger.name(categories::kTemp) == "Temp");
  CHECK(ledger.name(categories::kOptstate) == "Optstate");
  CHECK(ledger.name(categories::kOther) == "Other");
  CHECK(ledger.name(categories::kWorkspace) == "Workspace");
  CHECK(ledger.categories() == 8);
  CHECK(ledger.category("Temp") == categories::kTemp);
  CHECK(ledger.name(ledger::phases::kForward) == "forward");
  CHECK(ledger.name(ledger::phases::kBackward) == "backward");
  CHECK(ledger.name(ledger::phases::kOptimizer) == "optimizer");
  CHECK(ledger.name(ledger::phases::kOther) == "other");
  CHECK(ledger.phases() == 4);
  CHECK(name(ModuleState::kPreForward) == "Pre-Forward");
  CHECK(name(ModuleState::kPostForward) == "Post-Forward");
  CHECK(name(ModuleState::kPeakForward) == "Peak-Forward");
  CHECK(name(ModuleState::kPreBackward) == "Pre-Backward");
  CHECK(name(ModuleState::kPostBackward) == "Post-Backward");
  CHECK(name(ModuleState::kPeakBackward) == "Peak-Backward");
  CHECK(name(ModuleState::kPreForwardAC) == "Pre-Forward-AC");
  CHECK(name(ModuleState::kPostForwardAC) == "Post-Forward-AC");
}

TEST_CASE("a name and its id map to each other, also after a move") {
  Ledger first;
  const DeviceId cuda = first.device("cuda:0");
  const DeviceId cpu = first.device("cpu");
  const CategoryId cache = first.category("KV cache");
  const OwnerId query = first.owner("layers.0.attention.query");
  const PhaseId validation = first.phase_named("validation");
  Ledger ledger = std::move(first);
  CHECK(ledger.device("cuda:0") == cuda);
  CHECK(ledger.device("cpu") == cpu);
  CHECK(ledger.devices() == 2);
  CHECK(value(cache) == 8);
  CHECK(ledger.category("KV cache") == cache);
  CHECK(ledger.owner("layers.0.attention.query") == query);
  CHECK(ledger.phase_named("validation") == validation);
  CHECK(ledger.name(cuda) == "cuda:0");
  CHECK(ledger.name(cpu) == "cpu");
  CHECK(ledger.name(cache) == "KV cache");
  CHECK(ledger.name(query) == "layers.0.attention.query");
  CHECK(ledger.name(validation) == "validation");
}

TEST_CASE("the empty path is the id without an owner") {
  Ledger ledger;
  CHECK(ledger.owner("") == kNoOwner);
  CHECK(ledger.name(kNoOwner).empty());
  CHECK(ledger.owners() == 1);
}

TEST_CASE("a name above the limit is refused with the limit and the name, and the other names stay") {
  Ledger ledger;
  for (std::size_t i = ledger.categories(); i < kMaxCategories; ++i) ledger.category("category " + std::to_string(i));
  CHECK_THROWS_WITH_AS(ledger.category("KV cache"),
                       "a ledger has at most 64 categories, but 'KV cache' would be one more; use fewer names",
                       InvalidArgument);
  CHECK(ledger.categories() == kMaxCategories);
  CHECK(ledger.category("category 63") == CategoryId{63});
  for (std::size_t i = 0; i < kMaxDevices; ++i) ledger.device("cuda:" + std::to_string(i));
  CHECK_THROWS_WITH_AS(ledger.device("cpu"),
                       "a ledger has at most 64 devices, but 'cpu' would be one more; use fewer names",
                       InvalidArgument);
  for (std::size_t i = ledger.phases(); i < kMaxPhases; ++i) ledger.phase_named("phase " + std::to_string(i));
  CHECK_THROWS_WITH_AS(ledger.phase_named("x"),
                       "a ledger has at most 64 phases, but 'x' would be one more; use fewer names", InvalidArgument);

  SUBCASE("all names up to the limit can be used") {
    const DeviceId device = ledger.device("cuda:63");
    for (std::uint64_t i = 0; i < kMaxCategories; ++i) {
      ledger.allocated(AllocationId{i}, i + 1, device, StreamId{0}, CategoryId(i), kNoOwner);
    }
    for (std::size_t i = 0; i < kMaxPhases; ++i) ledger.phase(PhaseId(i));
    for (std::uint64_t i = 0; i < kMaxCategories; ++i) CHECK(ledger.run_peak(device).balance[CategoryId(i)] == i + 1);
    CHECK(ledger.run_peak(device).balance.total() == 64 * 65 / 2);
    CHECK(ledger.run_phase_peak(device, PhaseId{63})->balance == ledger.balance(device));
    CHECK(ledger.defects() == 0);
  }
}

TEST_CASE("an unknown id has no name") {
  Ledger ledger;
  CHECK_THROWS_WITH_AS(ledger.name(OwnerId{7}),
                       "no entry has number 7 among the 1 owners of this ledger; use only ids from this ledger",
                       InvalidArgument);
  CHECK_THROWS_WITH_AS(ledger.balance(DeviceId{0}),
                       "no entry has number 0 among the 0 devices of this ledger; use only ids from this ledger",
                       InvalidArgument);
  CHECK_THROWS_AS(ledger.retain_now(DeviceId{0}), InvalidArgument);
  CHECK_THROWS_AS(ledger.contents(Peak{}), InvalidArgument);
}

}  // namespace test_names
