// NCCL's face: the events of collectives and transfers in the feed.

#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "plimsoll/pretend/model/control.h"
#include "plimsoll/pretend/model/control_c.h"

extern "C" {
struct UniqueId {
  char internal[128];
};
int ncclGetUniqueId(UniqueId*);
int ncclCommInitRankConfig(void**, int, UniqueId, int, void*);
int ncclCommSplit(void*, int, int, void**, void*);
int ncclCommShrink(void*, int*, int, void**, void*, int);
int ncclCommDestroy(void*);
int ncclCommAbort(void*);
int ncclGroupStart();
int ncclGroupEnd();
int ncclAllReduce(const void*, void*, std::size_t, int, int, void*, void*);
int ncclReduceScatter(const void*, void*, std::size_t, int, int, void*, void*);
int ncclBroadcast(const void*, void*, std::size_t, int, int, void*, void*);
int ncclSend(const void*, std::size_t, int, int, void*, void*);
int ncclRecv(void*, std::size_t, int, int, void*, void*);
}

using namespace plimsoll::pretend;
using plimsoll::Bytes;

namespace {

constexpr int kFloat32 = 7;
constexpr int kBfloat16 = 9;

struct Communicator {
  Communicator(int rank, int ranks) {
    UniqueId id{};
    REQUIRE(ncclGetUniqueId(&id) == 0);
    REQUIRE(ncclCommInitRankConfig(&get, ranks, id, rank, nullptr) == 0);
  }
  ~Communicator() { CHECK(ncclCommDestroy(get) == 0); }
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  void* get = nullptr;
};

void all_reduce(void* communicator) {
  REQUIRE(ncclAllReduce(nullptr, nullptr, 1, kFloat32, 0, communicator, nullptr) == 0);
}

}  // namespace

TEST_CASE("collectives are reported with the bytes that this rank sends") {
  Communicator communicator(1, 4);
  struct Seen {
    std::string name;
    Bytes bytes;
    int ranks;
  };
  std::vector<Seen> seen;
  const auto token = control::listen([&](const Event& event) {
    if (event.kind == Happening::kCollective) seen.push_back({event.name, event.bytes, event.ranks});
  });
  REQUIRE(ncclGroupStart() == 0);
  CHECK(ncclAllReduce(nullptr, nullptr, 10, kBfloat16, 0, communicator.get, nullptr) == 0);
  CHECK(ncclReduceScatter(nullptr, nullptr, 10, kFloat32, 0, communicator.get, nullptr) == 0);
  CHECK(ncclRecv(nullptr, 10, kFloat32, 2, communicator.get, nullptr) == 0);
  REQUIRE(ncclGroupEnd() == 0);
  control::stop_listening(token);
  REQUIRE(seen.size() == 3);
  CHECK(seen[0].name == "ncclAllReduce");
  CHECK(seen[0].bytes == 20);
  CHECK(seen[0].ranks == 4);
  CHECK(seen[1].bytes == 10 * 4 * 4);
  CHECK(seen[2].bytes == 0);
}

TEST_CASE("groups of the same size are numbered in the order of creation, and events have the rank in each") {
  Communicator data(1, 4), tensor(3, 4);
  void *split = nullptr, *shrunk = nullptr;
  int excluded[] = {0};
  REQUIRE(ncclCommSplit(tensor.get, 0, 3, &split, nullptr) == 0);
  REQUIRE(ncclCommShrink(tensor.get, excluded, 1, &shrunk, nullptr, 0) == 0);
  std::vector<Event> seen;
  const auto token = control::listen([&](const Event& event) { seen.push_back(event); }, bit(Happening::kCollective));
  for (void* communicator : {data.get, tensor.get, split, shrunk, data.get}) all_reduce(communicator);
  REQUIRE(ncclCommDestroy(split) == 0);
  const Communicator later(0, 4);
  all_reduce(later.get);
  control::stop_listening(token);
  REQUIRE(ncclCommAbort(shrunk) == 0);

  REQUIRE(seen.size() == 6);
  const std::uint32_t first = seen[0].communicator;
  CHECK(first > 0);
  const std::uint32_t numbers[] = {first, first + 1, first + 2, first + 3, first, first + 4};
  const int ranks[] = {1, 3, 3, 2, 1, 0}, sizes[] = {4, 4, 4, 3, 4, 4};
  for (std::size_t i = 0; i < seen.size(); ++i) {
    CAPTURE(i);
    CHECK(seen[i].communicator == numbers[i]);
    CHECK(seen[i].rank == ranks[i]);
    CHECK(seen[i].ranks == sizes[i]);
    CHECK(seen[i].peer == kNoPeer);
  }
}

TEST_CASE("the root of a collective and the other side of a transfer are in the events and the work log") {
  Communicator communicator(1, 4);
  const std::string path =
      (std::filesystem::temp_directory_path() / ("plimsoll_nccl_" + std::to_string(getpid()))).string();
  std::vector<Event> seen;
  const auto token = control::listen([&](const Event& event) { seen.push_back(event); }, bit(Happening::kCollective));
  REQUIRE(plimsoll_log_work(path.c_str()) == 0);
  CHECK(ncclSend(nullptr, 10, kFloat32, 2, communicator.get, nullptr) == 0);
  CHECK(ncclRecv(nullptr, 10, kFloat32, 0, communicator.get, nullptr) == 0);
  CHECK(ncclBroadcast(nullptr, nullptr, 10, kFloat32, 3, communicator.get, nullptr) == 0);
  all_reduce(communicator.get);
  REQUIRE(plimsoll_log_work(nullptr) == 0);
  control::stop_listening(token);

  REQUIRE(seen.size() == 4);
  CHECK(seen[0].peer == 2);
  CHECK(seen[1].peer == 0);
  CHECK(seen[2].peer == 3);
  CHECK(seen[3].peer == kNoPeer);
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  std::filesystem::remove(path);
  const std::string number = std::to_string(seen[0].communicator);
  CHECK(lines == std::vector<std::string>{"collective 0 0 0 40 ncclSend " + number + " 1 4 2",
                                          "collective 0 0 0 0 ncclRecv " + number + " 1 4 0",
                                          "collective 0 0 0 40 ncclBroadcast " + number + " 1 4 3",
                                          "collective 0 0 0 4 ncclAllReduce " + number + " 1 4 -1"});
}
