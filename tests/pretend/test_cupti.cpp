// CUPTI's face: a profiler starts and stops, and receives no records.

#include <doctest/doctest.h>

#include <cstdint>

extern "C" {
int cuptiGetVersion(std::uint32_t*);
int cuptiSubscribe(void**, void*, void*);
int cuptiUnsubscribe(void*);
int cuptiEnableDomain(std::uint32_t, void*, int);
int cuptiActivityRegisterCallbacks(void*, void*);
int cuptiActivityEnable(int);
int cuptiActivityDisable(int);
int cuptiActivityFlushAll(std::uint32_t);
int cuptiActivityGetNextRecord(std::uint8_t*, std::size_t, void**);
int cuptiActivityGetNumDroppedRecords(void*, std::uint32_t, std::size_t*);
int cuptiActivityPushExternalCorrelationId(int, std::uint64_t);
int cuptiActivityPopExternalCorrelationId(int, std::uint64_t*);
int cuptiGetResultString(int, const char**);
}

namespace {
int requests = 0;
void on_request() { ++requests; }
}  // namespace

TEST_CASE("a profiler starts and stops without a request for a buffer") {
  CHECK(cuptiActivityRegisterCallbacks(nullptr, nullptr) == 1);
  auto* callback = reinterpret_cast<void*>(&on_request);
  REQUIRE(cuptiActivityRegisterCallbacks(callback, callback) == 0);
  CHECK(cuptiActivityEnable(10) == 0);
  CHECK(cuptiActivityFlushAll(1) == 0);
  CHECK(cuptiActivityDisable(10) == 0);
  CHECK(requests == 0);
  std::uint8_t buffer[64] = {};
  void* record = buffer;
  CHECK(cuptiActivityGetNextRecord(buffer, sizeof(buffer), &record) == 12);
  CHECK(record == nullptr);
  std::size_t dropped = 1;
  CHECK(cuptiActivityGetNumDroppedRecords(nullptr, 0, &dropped) == 0);
  CHECK(dropped == 0);
}

TEST_CASE("only one subscriber is allowed") {
  void *first = nullptr, *second = nullptr;
  REQUIRE(cuptiSubscribe(&first, nullptr, nullptr) == 0);
  CHECK(cuptiSubscribe(&second, nullptr, nullptr) == 39);
  CHECK(cuptiEnableDomain(1, first, 1) == 0);
  CHECK(cuptiEnableDomain(1, nullptr, 1) == 1);
  CHECK(cuptiUnsubscribe(first) == 0);
  CHECK(cuptiUnsubscribe(nullptr) == 1);
  REQUIRE(cuptiSubscribe(&second, nullptr, nullptr) == 0);
  CHECK(cuptiUnsubscribe(second) == 0);
}

TEST_CASE("each kind has a stack of correlation ids") {
  std::uint64_t id = 0;
  CHECK(cuptiActivityPushExternalCorrelationId(3, 7) == 0);
  CHECK(cuptiActivityPushExternalCorrelationId(3, 8) == 0);
  CHECK(cuptiActivityPushExternalCorrelationId(4, 9) == 0);
  CHECK(cuptiActivityPopExternalCorrelationId(3, &id) == 0);
  CHECK(id == 8);
  CHECK(cuptiActivityPopExternalCorrelationId(3, nullptr) == 0);
  CHECK(cuptiActivityPopExternalCorrelationId(3, &id) == 18);
  CHECK(cuptiActivityPopExternalCorrelationId(4, &id) == 0);
  CHECK(id == 9);
  CHECK(cuptiActivityPopExternalCorrelationId(99, &id) == 1);
}
