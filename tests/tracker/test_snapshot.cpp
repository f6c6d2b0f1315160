#include <doctest/doctest.h>

#include "plimsoll/tracker/snapshot.h"
#include "tracker/looking.h"

namespace plimsoll {

namespace {

DeviceSnapshot device(const std::vector<DeviceSnapshot::Entry>& entries) {
  DeviceSnapshot made;
  for (const auto& [category, bytes] : entries) made.add(category, bytes);
  return made;
}

}  // namespace

TEST_CASE("the entries of a device sum to its total, in order of arrival") {
  auto made = device({{"Parameter", 10}, {"Other", 5}, {"Parameter", 2}});
  CHECK(made.total() == 17);
  CHECK(made["Parameter"] == 12);
  CHECK(made["Other"] == 5);
  CHECK(made["Temp"] == 0);
  REQUIRE(made.categories().size() == 2);
  CHECK(made.categories()[0].first == "Parameter");
  CHECK(made.categories()[1].first == "Other");
}

TEST_CASE("an absent category counts as 0") {
  CHECK(device({{"Parameter", 10}, {"Temp", 0}}) == device({{"Parameter", 10}}));
  CHECK(device({{"Parameter", 10}}) == device({{"Temp", 0}, {"Parameter", 10}}));
  CHECK_FALSE(device({{"Parameter", 10}}) == device({{"Temp", 10}}));
  CHECK_FALSE(device({{"Parameter", 10}, {"Temp", 1}}) == device({{"Parameter", 10}}));
}

TEST_CASE("a difference has increases and decreases, and leaves out devices without either") {
  const Snapshot before{{"cpu", device({{"Parameter", 10}, {"Temp", 5}})}, {"cuda:0", device({{"Other", 3}})}};
  const Snapshot after{{"cpu", device({{"Parameter", 4}, {"Gradient", 7}, {"Temp", 5}})},
                       {"cuda:0", device({{"Other", 3}})},
                       {"cuda:1", device({{"Other", 1}})}};
  const auto change = diff(before, after);
  CHECK(change == Snapshot{{"cpu", device({{"Parameter", -6}, {"Gradient", 7}})}, {"cuda:1", device({{"Other", 1}})}});
  CHECK(change.at("cpu").total() == 1);
  CHECK(diff(after, before).at("cuda:1").total() == -1);
  CHECK(sum(before, change).at("cpu") == after.at("cpu"));
  CHECK(diff(after, after) == Snapshot{});
  // What moved between categories is a difference, though the total stayed.
  CHECK(diff({{"cpu", device({{"Temp", 5}})}}, {{"cpu", device({{"Other", 5}})}}).at("cpu")["Temp"] == -5);
}

TEST_CASE("snapshots are summed category by category") {
  const Snapshot a{{"cpu", device({{"Parameter", 10}})}},
      b{{"cpu", device({{"Parameter", 1}, {"Temp", 2}})}, {"xpu:0", device({{"Other", 9}})}};
  const auto both = sum(a, b);
  CHECK(both == sum(b, a));
  CHECK(both.at("cpu") == device({{"Parameter", 11}, {"Temp", 2}}));
  CHECK(both.at("cpu").total() == 13);
  CHECK(both.at("xpu:0").total() == 9);
}

TEST_CASE("a snapshot is written as JSON, in order") {
  CHECK(to_json({}) == "{}");
  CHECK(to_json({{"cuda:0", device({{"Parameter", 4096}, {"KV \"cache\"", 1}})}, {"cpu", device({{"Other", -2}})}}) ==
        R"({"cpu":{"Other":-2,"Total":-2},"cuda:0":{"Parameter":4096,"KV \"cache\"":1,"Total":4097}})");
}

}  // namespace plimsoll
