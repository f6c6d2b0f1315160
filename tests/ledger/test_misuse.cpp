#include <doctest/doctest.h>

#include <cstdint>
#include <limits>

#include "plimsoll/ledger/ledger.h"

namespace test_misuse {

using namespace plimsoll;
using namespace plimsoll::ledger;

namespace {

// Deleters send events, so events must not throw.
static_assert(noexcept(std::declval<Ledger>().allocated({}, {}, {}, {}, {}, {})));
static_assert(noexcept(std::declval<Ledger>().freed({})));
static_assert(noexcept(std::declval<Ledger>().resized({}, {})));
static_assert(noexcept(std::declval<Ledger>().classified({}, {}, {})));
static_assert(noexcept(std::declval<Ledger>().classified({}, {})));
static_assert(noexcept(std::declval<Ledger>().segment({}, {})));
static_assert(noexcept(std::declval<Ledger>().entered({}, {})));
static_assert(noexcept(std::declval<Ledger>().left({})));
static_assert(noexcept(std::declval<Ledger>().step_begun()));
static_assert(noexcept(std::declval<Ledger>().phase({})));
static_assert(noexcept(std::declval<Ledger>().reset_run_peak()));

/// A ledger with one allocation on cuda:0: id 5, 100 bytes.
struct OneAllocation {
  Ledger ledger;
  DeviceId device = ledger.device("cuda:0");

  OneAllocation() { allocate(5, 100); }
  void allocate(std::uint64_t id, Bytes bytes) {
    ledger.allocated(AllocationId{id}, bytes, device, StreamId{0}, categories::kOther, kNoOwner);
  }
  void check(const char* defect) {
    CHECK(ledger.take_defect() == defect);
    CHECK_FALSE(ledger.take_defect().has_value());
    CHECK(ledger.defects() == 1);
    CHECK(ledger.balance(device).total() == 100);
    CHECK(ledger.balance(device)[categories::kOther] == 100);
    CHECK(ledger.run_peak(device).balance.total() == 100);
    CHECK(ledger.live_count() == 1);
  }
};

}  // namespace

TEST_CASE_FIXTURE(OneAllocation, "freeing an unknown id is a defect that names the id") {
  ledger.freed(AllocationId{9});
  check("event 2: freed allocation 9, which is unknown");
}

TEST_CASE_FIXTURE(OneAllocation, "a double free is a defect with a message of its own") {
  allocate(6, 0);
  ledger.freed(AllocationId{6});
  ledger.freed(AllocationId{6});
  check("event 4: freed allocation 6, which was already freed");
}

TEST_CASE_FIXTURE(OneAllocation, "the ids 0 and 1 are unknown before they are allocated, like any other") {
  SUBCASE("") {
    ledger.freed(AllocationId{0});
    check("event 2: freed allocation 0, which is unknown");
  }
  SUBCASE("") {
    ledger.freed(AllocationId{1});
    check("event 2: freed allocation 1, which is unknown");
  }
}

TEST_CASE_FIXTURE(OneAllocation, "resizing or classifying an allocation that is not alive is a defect that names it") {
  SUBCASE("") {
    ledger.resized(AllocationId{9}, 7);
    check("event 2: resized allocation 9, which is unknown");
  }
  SUBCASE("") {
    ledger.classified(AllocationId{9}, categories::kTemp);
    check("event 2: classified allocation 9, which is unknown");
  }
  SUBCASE("") {
    allocate(6, 0);
    ledger.freed(AllocationId{6});
    ledger.classified(AllocationId{6}, categories::kTemp, kNoOwner);
    check("event 4: classified allocation 6, which was already freed");
  }
}

TEST_CASE_FIXTURE(OneAllocation, "allocating a live id is a defect, and the first allocation stays") {
  allocate(5, 7);
  check("event 2: allocated allocation 5, which is alive; each allocation needs its own id");
}

TEST_CASE_FIXTURE(OneAllocation, "a total above 64 bits is a defect and does not wrap around") {
  constexpr Bytes kMost = std::numeric_limits<Bytes>::max();
  SUBCASE("") {
    allocate(6, kMost - 99);
    check("event 2: gave allocation 6 18446744073709551516 bytes, so the total of 'cuda:0' would exceed 64 bits");
  }
  SUBCASE("") {
    allocate(6, 0);
    ledger.resized(AllocationId{6}, kMost - 99);
    CHECK(ledger.take_defect() ==
          "event 3: gave allocation 6 18446744073709551516 bytes, so the total of 'cuda:0' would exceed 64 bits");
    ledger.resized(AllocationId{6}, kMost - 100);
    CHECK(ledger.balance(device).total() == kMost);
    ledger.freed(AllocationId{6});
    CHECK(ledger.balance(device).total() == 100);
    CHECK(ledger.run_peak(device).balance.total() == kMost);
  }
}

TEST_CASE_FIXTURE(OneAllocation, "giving back more segments than were taken is a defect") {
  ledger.segment(device, 10);
  SUBCASE("") {
    ledger.segment(device, -11);
    check("event 3: changed the reserved bytes of 'cuda:0' from 10 by -11; the result is negative or exceeds 64 bits");
  }
  SUBCASE("") {
    ledger.segment(device, std::numeric_limits<std::int64_t>::min());
    check(
        "event 3: changed the reserved bytes of 'cuda:0' from 10 by -9223372036854775808; the result is negative or "
        "exceeds 64 bits");
  }
  CHECK(ledger.reserved(device) == 10);
}

TEST_CASE_FIXTURE(OneAllocation, "leaving a module that is not open is a defect that names the module") {
  const OwnerId layer = ledger.owner("layers.0");
  ledger.entered(layer, ModuleState::kPreForward);
  REQUIRE(ledger.left(layer) != nullptr);
  CHECK(ledger.left(layer) == nullptr);
  check("event 4: left the module 'layers.0', which is not open");
}

TEST_CASE_FIXTURE(OneAllocation, "modules that are never left become a defect") {
  const OwnerId layer = ledger.owner("layers.0");
  for (std::size_t i = 0; i <= kMaxOpenModules; ++i) ledger.entered(layer, ModuleState::kPreForward);
  CHECK(ledger.open_modules().size() == kMaxOpenModules);
  check("event 4098: entered the module 'layers.0' while 4096 are open; leave each module that was entered");
}

TEST_CASE_FIXTURE(OneAllocation, "ids from outside the ledger are a defect and not an event") {
  const auto is_no_event = [&](const char* defect) {
    CHECK(value(ledger.now()) == 1);
    check(defect);
  };
  SUBCASE("") {
    ledger.allocated(AllocationId{6}, 1, DeviceId{3}, StreamId{0}, categories::kOther, kNoOwner);
    is_no_event("event 1: device number 3 does not belong to this ledger");
  }
  SUBCASE("") {
    ledger.segment(DeviceId{3}, 1);
    is_no_event("event 1: device number 3 does not belong to this ledger");
  }
  SUBCASE("") {
    ledger.classified(AllocationId{5}, CategoryId{60});
    is_no_event("event 1: category number 60 does not belong to this ledger");
  }
  SUBCASE("") {
    ledger.entered(OwnerId{60}, ModuleState::kPreForward);
    is_no_event("event 1: owner number 60 does not belong to this ledger");
  }
  SUBCASE("") {
    CHECK(ledger.left(OwnerId{60}) == nullptr);
    is_no_event("event 1: owner number 60 does not belong to this ledger");
  }
  SUBCASE("") {
    ledger.phase(PhaseId{60});
    is_no_event("event 1: phase number 60 does not belong to this ledger");
  }
}

TEST_CASE_FIXTURE(OneAllocation,
                  "take_defect returns the first defect since the last call, and all defects are counted") {
  for (const std::uint64_t id : {7, 8, 9}) ledger.freed(AllocationId{id});
  CHECK(ledger.take_defect() == "event 2: freed allocation 7, which is unknown");
  CHECK_FALSE(ledger.take_defect().has_value());
  CHECK(ledger.defects() == 3);
  ledger.freed(AllocationId{10});
  CHECK(ledger.take_defect() == "event 5: freed allocation 10, which is unknown");
}

}  // namespace test_misuse
