#include <doctest/doctest.h>

#include "plimsoll/capture/registry.h"
#include "plimsoll/tracker/mem_tracker.h"
#include "plimsoll/tracker/tracked_ledger.h"
#include "tracker/looking.h"

namespace plimsoll {

TEST_CASE("the next snapshot throws a defect once, and tracking continues") {
  MemTracker tracker;
  capture::Registry::of_process().defect("something was missed");
  capture::Registry::of_process().defect("and something else");
  const auto tensor = at::empty({8}, at::kByte);
  CHECK_THROWS_WITH_AS(tracker.snapshot(),
                       doctest::Contains("the memory tracker missed an event: something was missed"), c10::Error);
  CHECK(total(tracker) == 8);
}

TEST_CASE("a defect of the ledger is thrown too") {
  TrackedLedger books({}, nullptr);
  books.freed(ledger::AllocationId{123456789});
  CHECK_THROWS_WITH_AS(books.throw_defect(), doctest::Contains("123456789"), c10::Error);
  books.throw_defect();
}

TEST_CASE("a defect reaches the trackers of its time, and no later one") {
  MemTracker first;
  capture::Registry::of_process().defect("something was missed");
  MemTracker second;
  CHECK(now(second) == kNothing);
  CHECK_THROWS_AS(first.snapshot(), c10::Error);
}

}  // namespace plimsoll
