#include <doctest/doctest.h>

#include "plimsoll/tracker/explain/stage_log.h"

namespace plimsoll {

using fsdp::Stage;
using ledger::OwnerId;
using ledger::Sequence;

namespace {

constexpr OwnerId kRoot{1}, kBlock{2};

}  // namespace

TEST_CASE("a stage that begins after an event is not in the stages at that event") {
  StageLog log;
  log.add(0, Sequence{10}, kRoot, Stage::kBeforePreForward);
  CHECK_FALSE(log.at(0, Sequence{10})[kRoot]);
  REQUIRE(log.at(0, Sequence{11})[kRoot]);
  CHECK((log.at(0, Sequence{11})[kRoot]->stage == Stage::kBeforePreForward));
}

TEST_CASE("the running module is the last that began and is not over; a second output does not begin it again") {
  StageLog log;
  log.add(0, Sequence{1}, kRoot, Stage::kBeforePreBackward);
  log.add(0, Sequence{2}, kBlock, Stage::kBeforePreBackward);
  log.add(0, Sequence{3}, kRoot, Stage::kBeforePreBackward);
  log.add(0, Sequence{4}, kBlock, Stage::kAfterPostBackward);
  CHECK((log.at(0, Sequence{2}).running == kRoot));
  CHECK((log.at(0, Sequence{3}).running == kBlock));
  CHECK((log.at(0, Sequence{4}).running == kBlock));
  CHECK((log.at(0, Sequence{5}).running == kRoot));
}

TEST_CASE("a step starts with the stages at the end of the step before, kept or not") {
  StageLog log;
  log.add(0, Sequence{1}, kBlock, Stage::kAfterPostForward);
  log.add(1, Sequence{5}, kRoot, Stage::kBeforePreForward);
  CHECK((log.at(1, Sequence{5})[kBlock]->stage == Stage::kAfterPostForward));
  log.keep({});
  CHECK_FALSE(log.at(0, Sequence{9})[kBlock]);
  CHECK((log.at(1, Sequence{5})[kBlock]->stage == Stage::kAfterPostForward));
  log.forget_latest();
  CHECK((log.at(1, Sequence{1})[kRoot]->stage == Stage::kBeforePreForward));  // Only the stage is known.
  CHECK(log.entries() == 2);
}

}  // namespace plimsoll
