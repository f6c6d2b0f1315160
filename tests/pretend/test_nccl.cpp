// NCCL's face: communicators of a lone rank and their memory.

#include <doctest/doctest.h>

#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "plimsoll/pretend/model/control.h"
#include "plimsoll/pretend/model/machine.h"

extern "C" {
struct UniqueId {
  char internal[128];
};
int ncclGetUniqueId(UniqueId*);
int ncclGetVersion(int*);
const char* ncclGetErrorString(int);
const char* ncclGetLastError(void*);
int ncclCommInitRank(void**, int, UniqueId, int);
int ncclCommInitRankConfig(void**, int, UniqueId, int, void*);
int ncclCommInitAll(void**, int, const int*);
int ncclCommSplit(void*, int, int, void**, void*);
int ncclCommShrink(void*, int*, int, void**, void*, int);
int ncclCommDestroy(void*);
int ncclCommAbort(void*);
int ncclCommCount(void*, int*);
int ncclCommUserRank(void*, int*);
int ncclCommCuDevice(void*, int*);
int ncclCommGetAsyncError(void*, int*);
int ncclCommSuspend(void*, int);
int ncclCommResume(void*);
int ncclCommMemStats(void*, int, std::uint64_t*);
int ncclGroupEnd();
int ncclAllReduce(const void*, void*, std::size_t, int, int, void*, void*);
int ncclBroadcast(const void*, void*, std::size_t, int, int, void*, void*);
int ncclMemAlloc(void**, std::size_t);
int ncclMemFree(void*);
int ncclCommWindowRegister(void*, void*, std::size_t, void**, int);
int ncclCommWindowDeregister(void*, void*);
}

using namespace plimsoll::pretend;
using plimsoll::Bytes;

namespace {

constexpr int kInvalidArgument = 4;
constexpr int kInvalidUsage = 5;
constexpr int kFloat32 = 7;

Bytes nccl_bytes(int device = 0) { return control::memory(device).used_by[static_cast<int>(Reason::kNccl)]; }

struct Communicator {
  Communicator(int rank, int ranks) {
    UniqueId id{};
    REQUIRE(ncclGetUniqueId(&id) == 0);
    REQUIRE(ncclCommInitRankConfig(&get, ranks, id, rank, nullptr) == 0);
  }
  ~Communicator() { CHECK(ncclCommDestroy(get) == 0); }
  int ranks() const {
    int n = -1;
    CHECK(ncclCommCount(get, &n) == 0);
    return n;
  }
  void* get = nullptr;
};

struct Child {
  int rank = -1, ranks = -1;
};
Child split(const Communicator& parent, int color, int key) {
  void* child = nullptr;
  REQUIRE(ncclCommSplit(parent.get, color, key, &child, nullptr) == 0);
  REQUIRE(child != nullptr);
  Child result;
  CHECK(ncclCommCount(child, &result.ranks) == 0);
  CHECK(ncclCommUserRank(child, &result.rank) == 0);
  CHECK(ncclCommDestroy(child) == 0);
  return result;
}

}  // namespace

TEST_CASE("a communicator takes base bytes at creation, connection bytes at the first collective, and frees both") {
  const NcclBytes& bytes = control::profile().nccl;
  const Bytes before = nccl_bytes();
  {
    Communicator communicator(3, 8);
    CHECK(nccl_bytes() == before + bytes.base);
    CHECK(ncclAllReduce(nullptr, nullptr, 16, kFloat32, 0, communicator.get, nullptr) == 0);
    CHECK(nccl_bytes() == before + bytes.of(8));
    CHECK(ncclAllReduce(nullptr, nullptr, 16, kFloat32, 0, communicator.get, nullptr) == 0);
    CHECK(nccl_bytes() == before + bytes.of(8));
    std::uint64_t total = 0, connections = 0;
    CHECK(ncclCommMemStats(communicator.get, 3, &total) == 0);
    CHECK(ncclCommMemStats(communicator.get, 0, &connections) == 0);
    CHECK(total == bytes.of(8));
    CHECK(connections == bytes.of(8) - bytes.base);
  }
  CHECK(nccl_bytes() == before);
}

TEST_CASE("a suspended communicator frees its connections' memory until it resumes") {
  const NcclBytes& bytes = control::profile().nccl;
  Communicator communicator(0, 4);
  REQUIRE(ncclAllReduce(nullptr, nullptr, 1, kFloat32, 0, communicator.get, nullptr) == 0);
  const Bytes connected = nccl_bytes();
  REQUIRE(ncclCommSuspend(communicator.get, 1) == 0);
  CHECK(nccl_bytes() == connected - (bytes.of(4) - bytes.base));
  CHECK(ncclAllReduce(nullptr, nullptr, 1, kFloat32, 0, communicator.get, nullptr) == kInvalidUsage);
  CHECK(ncclCommSuspend(communicator.get, 1) == kInvalidUsage);
  REQUIRE(ncclCommResume(communicator.get) == 0);
  CHECK(nccl_bytes() == connected);
}

TEST_CASE("a communicator has the rank, size and device of its creation") {
  Communicator communicator(16383, 16384);
  int rank = -1, device = -1, error = -1;
  CHECK(communicator.ranks() == 16384);
  CHECK(ncclCommUserRank(communicator.get, &rank) == 0);
  CHECK(rank == 16383);
  CHECK(ncclCommCuDevice(communicator.get, &device) == 0);
  CHECK(device == 0);
  CHECK(ncclCommGetAsyncError(communicator.get, &error) == 0);
  CHECK(error == 0);
}

TEST_CASE("a rank outside of the group is refused with the reason") {
  void* communicator = nullptr;
  CHECK(ncclCommInitRank(&communicator, 8, UniqueId{}, 8) == kInvalidArgument);
  CHECK(communicator == nullptr);
  CHECK(std::string(ncclGetLastError(nullptr)) == "rank 8 of 8 ranks");
  int n = 0;
  CHECK(ncclCommCount(nullptr, &n) == kInvalidArgument);
  CHECK(std::string(ncclGetErrorString(kInvalidArgument)) == "invalid argument");
}

TEST_CASE("unique ids differ") {
  UniqueId first{}, second{};
  REQUIRE(ncclGetUniqueId(&first) == 0);
  REQUIRE(ncclGetUniqueId(&second) == 0);
  CHECK(std::memcmp(&first, &second, sizeof(first)) != 0);
}

TEST_CASE("invalid arguments are refused") {
  Communicator communicator(0, 2);
  CHECK(ncclGroupEnd() == kInvalidUsage);
  CHECK(ncclAllReduce(nullptr, nullptr, 1, 99, 0, communicator.get, nullptr) == kInvalidArgument);
  CHECK(ncclBroadcast(nullptr, nullptr, 1, kFloat32, 2, communicator.get, nullptr) == kInvalidArgument);
}

TEST_CASE("a split without a color returns no communicator") {
  Communicator parent(3, 8);
  void* child = &parent;
  CHECK(ncclCommSplit(parent.get, -1, 0, &child, nullptr) == 0);
  CHECK(child == nullptr);
}

TEST_CASE("a negative color is valid, as torch 2.5 uses them") {
  Communicator parent(3, 8);
  CHECK(split(parent, -934961569, 1).ranks == 8);
  CHECK(split(parent, -934961569, 1).rank == 1);
}

TEST_CASE("the color that torch computes from a group's ranks gives its size") {
  // abs(hash(tuple(ranks))) % 2**31 in Python 3.8 and later.
  Communicator parent(6, 32);
  CHECK(split(parent, 2031181855, 3).ranks == 4);  // (0, 2, 4, 6)
  CHECK(split(parent, 2031181855, 3).rank == 3);
  Communicator other(12, 32);
  CHECK(split(other, 2064315024, 4).ranks == 8);  // (8, …, 15)
  Communicator third(3, 32);
  CHECK(split(third, 1301067556, 0).ranks == 1);  // (3,)
}

TEST_CASE("a color that is the group's first rank bounds its size") {
  Communicator parent(13, 32);
  CHECK(split(parent, 1, 3).ranks == 8);    // 1, 5, 9, 13, … 29
  CHECK(split(parent, 12, 1).ranks == 20);  // 12, 13, …: at most to the end
  CHECK(split(parent, 13, 0).ranks == 19);
  CHECK(split(parent, 31, 2).ranks == 32);  // Not a color of torch's: the parent's size.
}

TEST_CASE("the ranks of a shrunk communicator are renumbered") {
  Communicator parent(5, 8);
  int excluded[] = {0, 6};
  void* child = nullptr;
  REQUIRE(ncclCommShrink(parent.get, excluded, 2, &child, nullptr, 0) == 0);
  int rank = -1, ranks = -1;
  CHECK(ncclCommUserRank(child, &rank) == 0);
  CHECK(ncclCommCount(child, &ranks) == 0);
  CHECK(rank == 4);
  CHECK(ranks == 6);
  CHECK(ncclCommAbort(child) == 0);
  int itself[] = {5};
  CHECK(ncclCommShrink(parent.get, itself, 1, &child, nullptr, 0) == kInvalidArgument);
}

TEST_CASE("ncclMemAlloc takes device memory") {
  const Bytes before = control::memory(0).used;
  void* pointer = nullptr;
  REQUIRE(ncclMemAlloc(&pointer, 3 << 20) == 0);
  CHECK(machine().device_of(pointer) == 0);
  CHECK(control::memory(0).used == before + (4 << 20));
  Communicator communicator(0, 2);
  void* window = nullptr;
  REQUIRE(ncclCommWindowRegister(communicator.get, pointer, 3 << 20, &window, 1) == 0);
  CHECK(ncclCommWindowDeregister(communicator.get, window) == 0);
  CHECK(ncclMemFree(pointer) == 0);
  CHECK(ncclMemFree(pointer) == kInvalidArgument);
}

TEST_CASE("a process can have a communicator for each of its devices") {
  std::vector<void*> communicators(static_cast<std::size_t>(machine().device_count()));
  REQUIRE(ncclCommInitAll(communicators.data(), machine().device_count(), nullptr) == 0);
  for (int i = 0; i < machine().device_count(); ++i) {
    int device = -1;
    CHECK(ncclCommCuDevice(communicators[static_cast<std::size_t>(i)], &device) == 0);
    CHECK(device == i);
    CHECK(ncclCommDestroy(communicators[static_cast<std::size_t>(i)]) == 0);
  }
  void* missing = nullptr;
  const int devices[] = {machine().device_count()};
  CHECK(ncclCommInitAll(&missing, 1, devices) == kInvalidArgument);
}

TEST_CASE("threads create, use and destroy their own communicators concurrently") {
  const Bytes before = nccl_bytes();
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int round = 0; round < 50; ++round) {
        UniqueId id{};
        void *communicator = nullptr, *half = nullptr;
        int error = -1;
        failures += ncclGetUniqueId(&id) != 0;
        failures += ncclCommInitRankConfig(&communicator, 8, id, t, nullptr) != 0;
        failures += ncclCommSplit(communicator, t % 2, t, &half, nullptr) != 0;
        for (void* one : {communicator, half}) {
          failures += ncclAllReduce(nullptr, nullptr, 1024, kFloat32, 0, one, nullptr) != 0;
          failures += ncclCommGetAsyncError(one, &error) != 0 || error != 0;  // As NCCL's watchdog does.
          failures += ncclCommDestroy(one) != 0;
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(failures == 0);
  CHECK(nccl_bytes() == before);
}

TEST_CASE("a communicator connects once if forward and autograd first use it concurrently") {
  const Bytes before = nccl_bytes();
  for (int round = 0; round < 100; ++round) {
    UniqueId id{};
    void* communicator = nullptr;
    REQUIRE(ncclGetUniqueId(&id) == 0);
    REQUIRE(ncclCommInitRankConfig(&communicator, 8, id, 0, nullptr) == 0);
    std::atomic<int> failures{0}, waiting{2};
    std::vector<std::thread> threads;
    for (int t = 0; t < 2; ++t) {
      threads.emplace_back([&] {
        for (--waiting; waiting != 0;) std::this_thread::yield();
        failures += ncclAllReduce(nullptr, nullptr, 1024, kFloat32, 0, communicator, nullptr) != 0;
      });
    }
    for (auto& thread : threads) thread.join();
    CHECK(failures == 0);
    CHECK(nccl_bytes() == before + control::profile().nccl.of(8));
    CHECK(ncclCommDestroy(communicator) == 0);
  }
  CHECK(nccl_bytes() == before);
}
