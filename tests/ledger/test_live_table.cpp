#include <doctest/doctest.h>

#include <map>
#include <random>

#include "plimsoll/ledger/live_table.h"

namespace test_live_table {

using namespace plimsoll::ledger;

TEST_CASE("inserted records are found until they are erased, for any pattern of ids") {
  for (const std::uint64_t stride : {1ull, 512ull, 1ull << 32, 1ull << 58, 0x9E3779B97F4A7C15ull}) {
    CAPTURE(stride);
    std::mt19937_64 random(stride);
    LiveTable table;
    std::map<AllocationId, plimsoll::Bytes> expected;
    for (int i = 0; i < 20'000; ++i) {
      const AllocationId id{random() % 600 * stride};
      LiveRecord* record = table.find(id);
      REQUIRE((record != nullptr) == expected.contains(id));
      if (record == nullptr) {
        expected[id] = static_cast<plimsoll::Bytes>(i);
        table.insert({.id = id, .bytes = static_cast<plimsoll::Bytes>(i)});
      } else {
        REQUIRE(record->bytes == expected[id]);
        expected.erase(id);
        table.erase(record);
      }
      REQUIRE(table.count() == expected.size());
    }
    for (const auto& [id, bytes] : expected) CHECK(table.find(id)->bytes == bytes);
    for (std::uint64_t i = 0; i < 600; ++i) {
      if (LiveRecord* record = table.find(AllocationId{i * stride})) table.erase(record);
    }
    CHECK(table.count() == 0);
  }
}

TEST_CASE("the records are stored without gaps") {
  LiveTable table;
  for (std::uint64_t i = 0; i < 100; ++i) table.insert({.id = AllocationId{i}, .bytes = 1});
  for (std::uint64_t i = 0; i < 100; i += 3) table.erase(table.find(AllocationId{i}));
  std::uint64_t ids = 0;
  for (const LiveRecord& record : table.records()) ids += value(record.id);
  CHECK(table.records().size() == 66);
  CHECK(ids == 4950 - 1683);
}

}  // namespace test_live_table
