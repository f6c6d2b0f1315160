#include <doctest/doctest.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "pretend/recorder.h"

using namespace plimsoll::pretend;

extern "C" {
int cufftCreate(int*);
int cufftDestroy(int);
int cufftSetAutoAllocation(int, int);
int cufftSetStream(int, void*);
int cufftSetWorkArea(int, void*);
int cufftGetSize(int, std::size_t*);
int cufftXtMakePlanMany(int, int, long long*, long long*, long long, long long, int, long long*, long long, long long,
                        int, long long, std::size_t*, int);
int cufftXtExec(int, void*, void*, int);
int cufftPlan1d(int*, int, int, int);
int cufftExecC2C(int, void*, void*, int);
}

namespace {

constexpr int kSuccess = 0;
constexpr int kInvalidPlan = 1;
constexpr int kInvalidType = 3;
constexpr int kInvalidSize = 8;
constexpr int kC32F = 4;
constexpr int kC2C = 0x29;

/// The workspace of a complex transform, queried as in torch: without the library's own allocation.
std::size_t work_of(std::initializer_list<long long> lengths, long long batch) {
  std::vector<long long> n(lengths);
  int plan = 0;
  REQUIRE(cufftCreate(&plan) == kSuccess);
  REQUIRE(cufftSetAutoAllocation(plan, 0) == kSuccess);
  std::size_t work = 1;
  REQUIRE(cufftXtMakePlanMany(plan, static_cast<int>(n.size()), n.data(), nullptr, 1, 1, kC32F, nullptr, 1, 1, kC32F,
                              batch, &work, kC32F) == kSuccess);
  CHECK(cufftDestroy(plan) == kSuccess);
  return work;
}

plimsoll::Bytes handle_bytes() { return control::memory(0).used_by[static_cast<int>(Reason::kHandles)]; }

}  // namespace

TEST_CASE("the workspace grows with the prime factors of the lengths, within the library's bound") {
  CHECK(work_of({1024}, 16) == 0);
  CHECK(work_of({1000}, 16) == 1000 * 16 * 8);
  CHECK(work_of({64, 64}, 2) == 64 * 64 * 2 * 8);
  CHECK(work_of({1009}, 1) == 2 * 2048 * 8);
  CHECK(work_of({1009, 8}, 3) == 2 * 2048 * 8 * 3 * 8);
  for (long long n = 1; n < 200; ++n) CHECK(work_of({n}, 3) <= static_cast<std::size_t>(8 * 3 * n * 8));
}

TEST_CASE("a transform goes to the plan's stream") {
  int plan = 0;
  REQUIRE(cufftCreate(&plan) == kSuccess);
  REQUIRE(cufftSetAutoAllocation(plan, 0) == kSuccess);
  CHECK(cufftXtExec(plan, nullptr, nullptr, -1) == kInvalidPlan);  // Has no sizes yet.
  long long n[] = {48};
  std::size_t work = 0;
  REQUIRE(cufftXtMakePlanMany(plan, 1, n, nullptr, 1, 1, kC32F, nullptr, 1, 1, kC32F, 1, &work, kC32F) == kSuccess);
  std::size_t again = 0;
  CHECK(cufftGetSize(plan, &again) == kSuccess);
  CHECK(again == work);
  Stream* stream = machine().create_stream(0, 0, 0);
  CHECK(cufftSetStream(plan, stream) == kSuccess);
  DeviceBuffer area(1 << 20);
  CHECK(cufftSetWorkArea(plan, area.get()) == kSuccess);
  Recorder recorder;
  CHECK(cufftXtExec(plan, nullptr, nullptr, -1) == kSuccess);
  const auto entries = recorder.take();
  REQUIRE(entries.size() == 1);
  CHECK(entries[0].name == "cufftXtExec");
  CHECK(entries[0].event.stream == stream->id);
  CHECK(cufftDestroy(plan) == kSuccess);
  machine().destroy_stream(stream);
}

TEST_CASE("the library's own workspace is device memory until the plan is destroyed or the caller sets one") {
  const auto before = handle_bytes();
  int plan = 0;
  REQUIRE(cufftPlan1d(&plan, 1000, kC2C, 10) == kSuccess);
  CHECK(handle_bytes() == before + 1000 * 10 * 8);
  CHECK(cufftExecC2C(plan, nullptr, nullptr, 1) == kSuccess);
  DeviceBuffer area(1 << 20);
  CHECK(cufftSetWorkArea(plan, area.get()) == kSuccess);
  CHECK(handle_bytes() == before);
  CHECK(cufftDestroy(plan) == kSuccess);
  CHECK(handle_bytes() == before);
  REQUIRE(cufftPlan1d(&plan, 1000, kC2C, 10) == kSuccess);
  CHECK(cufftDestroy(plan) == kSuccess);
  CHECK(handle_bytes() == before);
}

TEST_CASE("bad plans are refused") {
  int plan = 0;
  CHECK(cufftPlan1d(&plan, 0, kC2C, 1) == kInvalidSize);
  CHECK(cufftPlan1d(&plan, 8, 77, 1) == kInvalidType);
  CHECK(cufftDestroy(plan) == kInvalidPlan);  // It was removed.
  CHECK(cufftXtExec(123456, nullptr, nullptr, 1) == kInvalidPlan);
  REQUIRE(cufftCreate(&plan) == kSuccess);
  long long n[] = {8, 8, 8, 8};
  std::size_t work = 0;
  CHECK(cufftXtMakePlanMany(plan, 4, n, nullptr, 1, 1, kC32F, nullptr, 1, 1, kC32F, 1, &work, kC32F) == kInvalidSize);
  CHECK(cufftXtMakePlanMany(plan, 1, n, nullptr, 1, 1, kC32F, nullptr, 1, 1, kC32F, 1, &work, 99) == kInvalidType);
  CHECK(cufftDestroy(plan) == kSuccess);
}

TEST_CASE("threads create, run and destroy their own plans concurrently") {
  const plimsoll::Bytes before = handle_bytes();
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int round = 0; round < 100; ++round) {
        int plan = 0;
        std::size_t work = 0;
        failures += cufftPlan1d(&plan, 1000, kC2C, t + 1) != kSuccess;
        failures += cufftGetSize(plan, &work) != kSuccess || work != 1000 * 8 * static_cast<std::size_t>(t + 1);
        failures += cufftExecC2C(plan, nullptr, nullptr, -1) != kSuccess;
        failures += cufftDestroy(plan) != kSuccess;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(failures == 0);
  CHECK(handle_bytes() == before);
}
