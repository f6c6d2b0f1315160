#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "plimsoll/base/errors.h"
#include "pretend/model/small_machine.h"

namespace test_machine {

using namespace plimsoll::pretend;
using namespace plimsoll::literals;

TEST_CASE("a machine without cards is refused") {
  CHECK_THROWS_AS(Machine({.profile = small_profile(), .cards = 0}), plimsoll::InvalidArgument);
}

TEST_CASE("the context is counted once, at the first use of its device") {
  Machine machine({.profile = small_profile(), .cards = 2});
  CHECK(machine.device(0).memory.counters().used == 0);
  CHECK_FALSE(machine.device(0).has_context());
  REQUIRE(machine.device(0).ensure_context(machine.profile()));
  REQUIRE(machine.device(0).ensure_context(machine.profile()));
  CHECK(machine.device(0).memory.counters().used == 10_MiB);
  CHECK(machine.device(1).memory.counters().used == 0);
}

TEST_CASE("a pointer belongs to the device with its address range") {
  Machine machine({.profile = small_profile(), .cards = 3});
  const auto address = *machine.device(2).memory.allocate(1_MiB);
  CHECK(machine.device_of(reinterpret_cast<void*>(address)) == 2);
  int local = 0;
  CHECK_FALSE(machine.device_of(&local));
}

TEST_CASE("without a lag an event completes at once") {
  Machine machine({.profile = small_profile()});
  Stream* stream = machine.create_stream(0, 0, 0);
  StreamEvent* event = machine.create_event(0, 0);
  CHECK(machine.completed(*event));
  machine.record(*event, *stream);
  CHECK(machine.completed(*event));
}

TEST_CASE("with a lag of N an event completes after N launches, or when the host waits") {
  Machine machine({.profile = small_profile(), .event_lag = 3});
  Stream* stream = machine.create_stream(0, 0, 0);
  StreamEvent* event = machine.create_event(0, 0);
  machine.record(*event, *stream);
  for (int i = 0; i < 3; ++i) {
    CHECK_FALSE(machine.completed(*event));
    machine.enqueue(*stream, launch("kernel"));
  }
  CHECK(machine.completed(*event));
  machine.record(*event, *stream);
  CHECK_FALSE(machine.completed(*event));
  machine.synchronize(0, "test");
  CHECK(machine.completed(*event));
}

TEST_CASE("each listener receives the kinds that it subscribed to, until it stops") {
  Machine machine({.profile = small_profile()});
  Stream* stream = machine.create_stream(0, 0, 0);
  std::vector<std::string> reported;
  CHECK_FALSE(machine.feed().listened(Happening::kLaunch));
  const auto token =
      machine.feed().subscribe([&](const Event& event) { reported.emplace_back(event.name); }, bit(Happening::kLaunch));
  CHECK(machine.feed().listened(Happening::kLaunch));
  CHECK_FALSE(machine.feed().listened(Happening::kSynchronize));
  machine.enqueue(*stream, launch("one"));
  machine.synchronize(0, "not asked for");
  machine.feed().unsubscribe(token);
  machine.enqueue(*stream, launch("two"));
  CHECK(reported == std::vector<std::string>{"one"});
  CHECK_FALSE(machine.feed().listened(Happening::kLaunch));
}

TEST_CASE("a destroyed pool lives until its memory is free") {
  Machine machine({.profile = small_profile()});
  Device& device = machine.device(0);
  MemoryPool* pool = device.made_pools.create(0, device.memory);
  const auto address = *device.made_pools.allocate(*pool, 1_MiB);
  CHECK(device.made_pools.destroy(pool));
  CHECK_FALSE(device.made_pools.contains(pool));
  CHECK(device.memory.counters().used == MemoryPool::kChunk);
  CHECK(device.made_pools.free(address));
  CHECK_FALSE(device.made_pools.free(address));
  CHECK(device.memory.counters().used == 0);
}

TEST_CASE("a memory pool grows by chunks, keeps freed memory and frees it on a trim") {
  Machine machine({.profile = small_profile()});
  MemoryPool& pool = machine.device(0).default_pool;
  const auto a = *pool.allocate(20_MiB);
  const auto b = *pool.allocate(20_MiB);
  CHECK(pool.counters().reserved == 2 * MemoryPool::kChunk);
  pool.set_threshold(~plimsoll::Bytes{0});
  CHECK(pool.free(a));
  CHECK_FALSE(pool.free(a));
  machine.synchronize(0, "test");
  CHECK(pool.counters().reserved == 2 * MemoryPool::kChunk);
  pool.trim_to(0);
  CHECK(pool.counters().reserved == MemoryPool::kChunk);
  CHECK(machine.device(0).memory.counters().used == MemoryPool::kChunk);
  CHECK(pool.free(b));
  pool.set_threshold(0);
  machine.synchronize(0, "test");
  CHECK(machine.device(0).memory.counters().used == 0);
  CHECK(pool.counters().used_high == 40_MiB);
}

TEST_CASE("host memory is real, is counted, and is found by any pointer into it") {
  HostMemory host;
  auto* pinned = static_cast<char*>(*host.allocate(1_MiB, HostMemory::Kind::kPinned, 0, 0));
  pinned[100] = 1;
  CHECK(host.find(pinned + 1_MiB - 1)->start == pinned);
  CHECK_FALSE(host.find(pinned + 1_MiB));
  char registered[64];
  CHECK(host.add(registered, sizeof registered, 0, 0));
  CHECK_FALSE(host.add(registered + 10, 4, 0, 0));
  CHECK_FALSE(host.free(registered));
  CHECK(host.counters().pinned == 1_MiB + 64);
  CHECK(host.remove(registered));
  CHECK_FALSE(host.remove(registered));
  CHECK(host.free(pinned));
  CHECK(host.counters().pinned == 0);
  CHECK(host.counters().pinned_peak == 1_MiB + 64);
}

TEST_CASE("zeroed ranges read as zeros, with released and with written pages; other bytes do not change") {
  HostMemory host;
  auto* pinned = static_cast<char*>(*host.allocate(4_MiB, HostMemory::Kind::kPinned, 0, 0));
  std::vector<char> other(4_MiB);
  CHECK(host.add(other.data(), other.size(), 0, 0));
  for (char* start : {pinned, other.data()}) {
    std::fill_n(start, 4_MiB, '\x01');
    host.zero(start + 100, 3_MiB);
    CHECK(start[99] == 1);
    CHECK(std::all_of(start + 100, start + 100 + 3_MiB, [](char c) { return c == 0; }));
    CHECK(start[100 + 3_MiB] == 1);
    host.zero(start + 100 + 3_MiB, 1);
    CHECK(start[100 + 3_MiB] == 0);
    CHECK(start[101 + 3_MiB] == 1);
  }
  CHECK(host.remove(other.data()));
  CHECK(host.free(pinned));
}

TEST_CASE("a record and its waits have the same mark; two records of an event have different marks") {
  Machine machine({.profile = small_profile()});
  Stream* one = machine.create_stream(0, 0, 0);
  Stream* other = machine.create_stream(0, 0, 0);
  StreamEvent* event = machine.create_event(0, 0);
  std::vector<Event> reported;
  machine.feed().subscribe([&](const Event& sent) { reported.push_back(sent); });
  CHECK(machine.wait(*other, *event) == Waited::kDone);
  machine.record(*event, *one);
  CHECK(machine.wait(*other, *event) == Waited::kDone);
  machine.record(*event, *other);
  machine.synchronize(*event, "the host");
  REQUIRE(reported.size() == 5);
  CHECK(reported[0].kind == Happening::kWait);
  CHECK(reported[0].mark == 0);
  CHECK(reported[1].kind == Happening::kRecord);
  CHECK(reported[1].stream == one->id);
  CHECK(reported[1].mark != 0);
  CHECK(reported[2].kind == Happening::kWait);
  CHECK(reported[2].stream == other->id);
  CHECK(reported[2].mark == reported[1].mark);
  CHECK(reported[3].mark > reported[1].mark);
  CHECK(reported[4].kind == Happening::kSynchronize);
  CHECK(reported[4].mark == reported[3].mark);
}

}  // namespace test_machine
