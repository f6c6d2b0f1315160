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

TEST_CASE("the context is charged once, at its device's first use") {
  Machine machine({.profile = small_profile(), .cards = 2});
  CHECK(machine.device(0).memory.counters().used == 0);
  CHECK_FALSE(machine.device(0).has_context());
  REQUIRE(machine.device(0).ensure_context(machine.profile()));
  REQUIRE(machine.device(0).ensure_context(machine.profile()));
  CHECK(machine.device(0).memory.counters().used == 10_MiB);
  CHECK(machine.device(1).memory.counters().used == 0);
}

TEST_CASE("a pointer belongs to the device whose window it lies in") {
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

TEST_CASE("with a lag an event completes after that many launches, or when the host waits") {
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

TEST_CASE("the feed gives each listener the kinds it asked for, until it stops") {
  Machine machine({.profile = small_profile()});
  Stream* stream = machine.create_stream(0, 0, 0);
  std::vector<std::string> heard;
  CHECK_FALSE(machine.feed().listened(Happening::kLaunch));
  const auto token =
      machine.feed().subscribe([&](const Event& event) { heard.emplace_back(event.name); }, bit(Happening::kLaunch));
  CHECK(machine.feed().listened(Happening::kLaunch));
  CHECK_FALSE(machine.feed().listened(Happening::kSynchronize));
  machine.enqueue(*stream, launch("one"));
  machine.synchronize(0, "not asked for");
  machine.feed().unsubscribe(token);
  machine.enqueue(*stream, launch("two"));
  CHECK(heard == std::vector<std::string>{"one"});
  CHECK_FALSE(machine.feed().listened(Happening::kLaunch));
}

TEST_CASE("a pool that is destroyed lives until the last of its memory is freed") {
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

TEST_CASE("a memory pool grows by chunks, keeps what is freed and gives it back when trimmed") {
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

TEST_CASE("host memory is real, counted, and found by any pointer into it") {
  HostMemory host;
  auto* pinned = static_cast<char*>(*host.allocate(1_MiB, HostMemory::Kind::kPinned, 0, 0));
  pinned[100] = 1;
  CHECK(host.find(pinned + 1_MiB - 1)->start == pinned);
  CHECK_FALSE(host.find(pinned + 1_MiB));
  char registered[64];
  CHECK(host.add(registered, sizeof registered, 0, 0));
  CHECK_FALSE(host.add(registered + 10, 4, 0, 0));
  CHECK_FALSE(host.free(registered));
  CHECK(host.pinned() == 1_MiB + 64);
  CHECK(host.remove(registered));
  CHECK_FALSE(host.remove(registered));
  CHECK(host.free(pinned));
  CHECK(host.pinned() == 0);
  CHECK(host.pinned_peak() == 1_MiB + 64);
}

TEST_CASE("zeros are zeros, whether pages are given back or written, and nothing beside them is changed") {
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

TEST_CASE("records and waits are told with the mark that ties them, the same event's records apart") {
  Machine machine({.profile = small_profile()});
  Stream* one = machine.create_stream(0, 0, 0);
  Stream* other = machine.create_stream(0, 0, 0);
  StreamEvent* event = machine.create_event(0, 0);
  std::vector<Event> heard;
  machine.feed().subscribe([&](const Event& told) { heard.push_back(told); });
  CHECK(machine.wait(*other, *event) == Waited::kDone);
  machine.record(*event, *one);
  CHECK(machine.wait(*other, *event) == Waited::kDone);
  machine.record(*event, *other);
  machine.synchronize(*event, "the host");
  REQUIRE(heard.size() == 5);
  CHECK(heard[0].kind == Happening::kWait);
  CHECK(heard[0].mark == 0);
  CHECK(heard[1].kind == Happening::kRecord);
  CHECK(heard[1].stream == one->id);
  CHECK(heard[1].mark != 0);
  CHECK(heard[2].kind == Happening::kWait);
  CHECK(heard[2].stream == other->id);
  CHECK(heard[2].mark == heard[1].mark);
  CHECK(heard[3].mark > heard[1].mark);
  CHECK(heard[4].kind == Happening::kSynchronize);
  CHECK(heard[4].mark == heard[3].mark);
}

}  // namespace test_machine
