#include <doctest/doctest.h>

#include "cli/fake_planning.h"
#include "plimsoll/base/errors.h"
#include "plimsoll/cli/search/fit_search.h"

namespace test_fit_search {

using namespace plimsoll::cli;
using plimsoll::report::Fit;

namespace {

FitQuestion question(Fit::Direction direction, std::int64_t count, std::size_t parallel) {
  return {.what = "batch",
          .direction = direction,
          .candidates = {count, [](std::int64_t place) { return place + 1; }},
          .request =
              [](std::int64_t value) {
                PlanRequest request;
                request.job.batch = value;
                return request;
              },
          .parallel = parallel};
}

std::size_t bits(std::int64_t number) {
  std::size_t count = 0;
  for (; number > 0; number /= 2) ++count;
  return count;
}

}  // namespace

TEST_CASE("the largest value that fits is found exactly, in few runs") {
  for (const std::size_t parallel : {1U, 2U, 3U, 64U}) {
    for (std::int64_t limit = 1; limit <= 140; ++limit) {
      CAPTURE(parallel);
      CAPTURE(limit);
      FakePlanning planning(
          [&](const PlanRequest& r) { return PlanOutcome{.report = report_of(r.job.batch <= limit)}; });
      const Fit fit = find_limit(question(Fit::Direction::kMaximize, 1000, parallel), planning);
      REQUIRE(fit.limit == limit);
      REQUIRE(fit.beyond == limit + 1);
      CHECK(fit.at_limit->fits() == true);
      CHECK(fit.at_beyond->fits() == false);
      CHECK(fit.probes.size() == planning.asked.size());
      // One run at a time: one for each doubling, and one for each halving between the last two.
      if (parallel == 1) CHECK(planning.asked.size() <= 2 * bits(limit) + 1);
      CHECK(planning.batches.size() <= 2 * bits(limit) + 1);
      for (const std::size_t batch : planning.batches) CHECK(batch <= 4);
    }
  }
}

TEST_CASE("the fewest GPUs that fit are found exactly") {
  for (const std::size_t parallel : {1U, 2U, 4U}) {
    for (std::int64_t least = 1; least <= 140; ++least) {
      CAPTURE(least);
      FakePlanning planning(
          [&](const PlanRequest& r) { return PlanOutcome{.report = report_of(r.job.batch >= least)}; });
      const Fit fit = find_limit(question(Fit::Direction::kMinimize, 1000, parallel), planning);
      REQUIRE(fit.limit == least);
      CHECK(fit.at_limit->fits() == true);
      CHECK(fit.beyond.value_or(0) == least - 1);
      CHECK(fit.at_beyond.has_value() == (least > 1));
    }
  }
}

TEST_CASE("if nothing fits there is no limit, and the first try is reported") {
  FakePlanning planning([](const PlanRequest&) { return PlanOutcome{.report = report_of(false)}; });
  const Fit most = find_limit(question(Fit::Direction::kMaximize, 100, 1), planning);
  CHECK_FALSE(most.limit);
  CHECK(most.beyond == 1);
  CHECK(planning.asked.size() == 1);
  const Fit least = find_limit(question(Fit::Direction::kMinimize, 100, 1), planning);
  CHECK_FALSE(least.limit);
  CHECK(least.beyond == 100);
  CHECK(least.at_beyond->fits() == false);
}

TEST_CASE("if everything fits the last value is the limit") {
  for (const std::int64_t count : {1, 2, 3, 100}) {
    FakePlanning planning([](const PlanRequest&) { return PlanOutcome{.report = report_of(true)}; });
    const Fit fit = find_limit(question(Fit::Direction::kMaximize, count, 2), planning);
    CHECK(fit.limit == count);
    CHECK_FALSE(fit.beyond);
    CHECK_FALSE(fit.at_beyond);
    CHECK(fit.probes.back().value == count);
  }
}

TEST_CASE("the first value that does not fit is the border, whatever larger ones do") {
  FakePlanning planning([](const PlanRequest& r) { return PlanOutcome{.report = report_of(r.job.batch != 2)}; });
  const Fit fit = find_limit(question(Fit::Direction::kMaximize, 100, 4), planning);
  CHECK(fit.limit == 1);
  CHECK(fit.beyond == 2);
}

TEST_CASE("candidates need not be consecutive") {
  FitQuestion gpus = question(Fit::Direction::kMinimize, 5, 1);
  gpus.candidates.value = [](std::int64_t place) { return std::vector<std::int64_t>{1, 2, 7, 8, 64}.at(place); };
  FakePlanning planning([](const PlanRequest& r) { return PlanOutcome{.report = report_of(r.job.batch >= 8)}; });
  const Fit fit = find_limit(gpus, planning);
  CHECK(fit.limit == 8);
  CHECK(fit.beyond == 7);
  CHECK(gpus.candidates.first_from(3) == 2);
  CHECK(gpus.candidates.first_from(65) == 5);
}

TEST_CASE("a run that fails ends the search, and the message has the value") {
  FakePlanning planning([](const PlanRequest& r) {
    if (r.job.batch < 4) return PlanOutcome{.report = report_of(true)};
    return PlanOutcome{.error = "it broke", .usage = r.job.seq_len.has_value()};
  });
  FitQuestion failing = question(Fit::Direction::kMaximize, 100, 1);
  CHECK_THROWS_WITH_AS(find_limit(failing, planning), "with --batch 4: it broke", PlanningFailed);
  failing.request = [](std::int64_t value) {
    PlanRequest request;
    request.job.batch = value;
    request.job.seq_len = 1;
    return request;
  };
  CHECK_THROWS_WITH_AS(find_limit(failing, planning), "with --batch 4: it broke", plimsoll::InvalidArgument);
}

}  // namespace test_fit_search
