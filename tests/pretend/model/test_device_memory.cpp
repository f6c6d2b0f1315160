#include <doctest/doctest.h>

#include <array>
#include <random>
#include <thread>
#include <vector>

#include "pretend/model/small_machine.h"

namespace test_device_memory {

using namespace plimsoll::pretend;
using namespace plimsoll::literals;
using plimsoll::Bytes;

namespace {

struct Card {
  explicit Card(Bytes capacity = 100_MiB, Bytes window = 1_GiB + DeviceMemory::kVariables)
      : memory(0, capacity, window, feed) {}
  Feed feed;
  DeviceMemory memory;
};

}  // namespace

TEST_CASE("an allocation takes whole pieces of 2 MiB") {
  Card card;
  const auto address = card.memory.allocate(1);
  REQUIRE(address);
  CHECK(*address % kGranularity == 0);
  CHECK(card.memory.counters().used == 2_MiB);
  CHECK(card.memory.range_of(*address + 1)->bytes == 2_MiB);
}

TEST_CASE("addresses go upwards and are not reused before the end of the range") {
  Card card;
  const Address first = *card.memory.allocate(2_MiB);
  REQUIRE(card.memory.free(first));
  CHECK(*card.memory.allocate(2_MiB) == first + 2_MiB);
}

TEST_CASE("at the end of the range the first gap is reused") {
  Card card(100_MiB, 512_MiB + DeviceMemory::kVariables);
  const Address kept = *card.memory.allocate(10_MiB);
  Address last = kept;
  for (int i = 0; i < 20; ++i) {
    last = *card.memory.allocate(64_MiB);
    REQUIRE(card.memory.free(last));
  }
  CHECK(last >= kept + 10_MiB);
  CHECK(card.memory.counters().used == 10_MiB);
}

TEST_CASE("a reused gap at the end of the range is not given out twice") {
  Card card(80_MiB, 161_MiB + DeviceMemory::kVariables + kGranularity);
  REQUIRE(card.memory.reserve(60_MiB));
  const Address second = *card.memory.reserve(60_MiB);
  REQUIRE(card.memory.unreserve(second));
  const Address large = *card.memory.reserve(80_MiB);
  const Address small = *card.memory.reserve(10_MiB);
  CHECK(large == second);
  CHECK((small >= large + 80_MiB || small + 10_MiB <= large));
  CHECK_FALSE(card.memory.reserve(~Bytes{0}));
}

TEST_CASE("an allocation over the capacity is refused and changes nothing but the count of refusals") {
  Card card;
  REQUIRE(card.memory.allocate(60_MiB));
  CHECK_FALSE(card.memory.allocate(60_MiB));
  CHECK_FALSE(card.memory.allocate(~Bytes{0}));
  const auto counters = card.memory.counters();
  CHECK(counters.used == 60_MiB);
  CHECK(counters.peak == 60_MiB);
  CHECK(counters.refusals == 2);
  CHECK(card.memory.allocate(40_MiB));
}

TEST_CASE("the last refusal has the request, its reason, and the bytes used at that time") {
  Card card;
  const auto address = card.memory.allocate(60_MiB);
  REQUIRE(card.memory.charge(7_MiB, Reason::kNccl));
  CHECK_FALSE(card.memory.allocate(34_MiB + 1));
  CHECK(card.memory.counters().last_refusal.requested == 34_MiB + 1);
  CHECK_FALSE(card.memory.charge(50_MiB, Reason::kHandles));
  REQUIRE(card.memory.free(*address));
  REQUIRE(card.memory.charge(50_MiB, Reason::kHandles));
  const Refusal last = card.memory.counters().last_refusal;
  CHECK(last.requested == 50_MiB);
  CHECK(last.reason == Reason::kHandles);
  CHECK(last.used_by == std::array<Bytes, kReasonCount>{60_MiB, 0, 7_MiB, 0});
}

TEST_CASE("a refusal of a pool has the bytes of the request, not of the chunk") {
  Machine machine({.profile = small_profile()});
  MemoryPool& pool = machine.device(0).default_pool;
  for (const Bytes requested : {2_GiB, 1_GiB - 1, ~Bytes{0}}) {
    REQUIRE(machine.device(0).memory.charge(1_MiB, Reason::kNccl));
    CHECK_FALSE(pool.allocate(requested));
    CHECK(machine.device(0).memory.counters().last_refusal.requested == requested);
  }
  CHECK(machine.device(0).memory.counters().refusals == 3);
  CHECK(pool.counters().used == 0);
}

TEST_CASE("freeing an address that is not an allocation is refused") {
  Card card;
  const Address address = *card.memory.allocate(4_MiB);
  CHECK_FALSE(card.memory.free(address + 2_MiB));
  CHECK(card.memory.free(address));
  CHECK_FALSE(card.memory.free(address));
}

TEST_CASE("the peak keeps its parts") {
  Card card;
  REQUIRE(card.memory.charge(10_MiB, Reason::kContext));
  const Address address = *card.memory.allocate(50_MiB);
  REQUIRE(card.memory.charge(8_MiB, Reason::kNccl));
  card.memory.discharge(8_MiB, Reason::kNccl);
  REQUIRE(card.memory.free(address));
  const auto counters = card.memory.counters();
  CHECK(counters.used == 10_MiB);
  CHECK(counters.peak == 68_MiB);
  CHECK(counters.peak_by == std::array<Bytes, kReasonCount>{50_MiB, 10_MiB, 8_MiB, 0});
  card.memory.reset_peak();
  CHECK(card.memory.counters().peak == 10_MiB);
}

TEST_CASE("physical memory lives until it is released and unmapped") {
  Card card;
  const Address range = *card.memory.reserve(20_MiB);
  CHECK(card.memory.counters().used == 0);
  const auto handle = *card.memory.create(2_MiB);
  CHECK(card.memory.counters().used == 2_MiB);
  REQUIRE(card.memory.map(range, 2_MiB, handle));
  REQUIRE(card.memory.release(handle));
  CHECK(card.memory.counters().used == 2_MiB);
  CHECK(card.memory.handle_at(range + 1) == handle);
  CHECK_FALSE(card.memory.unreserve(range));
  REQUIRE(card.memory.unmap(range, 20_MiB));
  CHECK(card.memory.counters().used == 0);
  CHECK_FALSE(card.memory.release(handle));
  CHECK(card.memory.unreserve(range));
}

TEST_CASE("mappings do not overlap and stay in their reservation") {
  Card card;
  const Address range = *card.memory.reserve(4_MiB);
  const auto handle = *card.memory.create(4_MiB);
  REQUIRE(card.memory.map(range + 2_MiB, 2_MiB, handle));
  CHECK_FALSE(card.memory.map(range, 4_MiB, handle));
  CHECK_FALSE(card.memory.map(range + 4_MiB, 2_MiB, handle));
  CHECK_FALSE(card.memory.map(range, 6_MiB, handle));
  CHECK_FALSE(card.memory.map(*card.memory.allocate(2_MiB), 2_MiB, handle));
  CHECK(card.memory.map(range, 2_MiB, handle));
}

TEST_CASE("after random operations, the used bytes are zero when everything is free") {
  Card card(1_GiB, Bytes{16} << 30);
  std::mt19937_64 random(7);
  std::vector<Address> live;
  Bytes expected = 0;
  std::unordered_map<Address, Bytes> sizes;
  for (int i = 0; i < 20000; ++i) {
    if (live.empty() || random() % 5 < 3) {
      const Bytes bytes = 1 + random() % 40_MiB;
      const Bytes rounded = plimsoll::round_up(bytes, kGranularity);
      const auto address = card.memory.allocate(bytes);
      REQUIRE(address.has_value() == (expected + rounded <= 1_GiB));
      if (!address) continue;
      live.push_back(*address);
      sizes[*address] = rounded;
      expected += rounded;
    } else {
      std::swap(live[random() % live.size()], live.back());
      expected -= sizes[live.back()];
      REQUIRE(card.memory.free(live.back()));
      live.pop_back();
    }
    REQUIRE(card.memory.counters().used == expected);
  }
  for (const Address address : live) REQUIRE(card.memory.free(address));
  CHECK(card.memory.counters().used == 0);
}

TEST_CASE("threads can allocate and free concurrently") {
  Card card(1_GiB, Bytes{16} << 30);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&card] {
      for (int i = 0; i < 500; ++i) {
        const auto address = card.memory.allocate(2_MiB);
        if (address) card.memory.free(*address);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  const auto counters = card.memory.counters();
  CHECK(counters.used == 0);
  CHECK(counters.allocations == 2000);
  CHECK(counters.frees == 2000);
}

}  // namespace test_device_memory
