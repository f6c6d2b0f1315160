#include <doctest/doctest.h>

#include <string>

#include "distributed/ranks.h"

// Tests of the test tools: a failure on a rank must be reported.

using ranks::Rank;

TEST_CASE("a failure on a rank is reported with the rank, the place and the values") {
  const std::string defects = ranks::defects_on_ranks(3, [](const Rank& rank) { CHECK(rank.rank != 1); });
  CHECK(defects.find("rank 1 of 3: ") == 0);
  CHECK(defects.find("test_ranks.cpp:") != std::string::npos);
  CHECK(defects.find("CHECK( rank.rank != 1 ) is 1 != 1\n") != std::string::npos);
}

TEST_CASE("an exception, an exit and a crash of a rank are failures; an expected death is not") {
  CHECK(ranks::defects_on_ranks(1, [](const Rank&) { throw std::runtime_error("so it is"); }) ==
        "rank 0 of 1: threw: so it is\n");
  CHECK(ranks::defects_on_ranks(1, [](const Rank&) { _exit(3); }) == "rank 0 of 1:  ended with status 3\n");
  CHECK(ranks::defects_on_ranks(1, [](const Rank&) { raise(SIGTERM); }) == "rank 0 of 1:  ended by signal 15\n");
  CHECK(ranks::defects_on_ranks(1, [](const Rank& rank) { rank.die(); }) == "");
}

TEST_CASE("a REQUIRE stops its rank, and ranks have the function's captures") {
  const int wanted = 7;
  const std::string defects = ranks::defects_on_ranks(2, [wanted](const Rank& rank) {
    REQUIRE(rank.rank + wanted == 7);
    CHECK(wanted == 8);
  });
  CHECK(defects.find("CHECK( wanted == 8 ) is 7 == 8") != std::string::npos);
  CHECK(defects.find("REQUIRE( rank.rank + wanted == 7 ) is 8 == 7\n  threw: stopped at a REQUIRE") !=
        std::string::npos);
}

TEST_CASE("ranks connect through their store") {
  ranks::on_ranks(4, [](const Rank& rank) {
    const auto store = rank.store();
    CHECK(store->add("came", 1) <= 4);
    store->set("rank" + std::to_string(rank.rank), std::vector<std::uint8_t>{9});
    store->wait({"rank0", "rank1", "rank2", "rank3"});
    CHECK(store->add("came", 0) == 4);
  });
}
