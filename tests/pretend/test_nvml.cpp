// NVML's face.

#include <doctest/doctest.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "plimsoll/pretend/model/control.h"
#include "plimsoll/pretend/model/machine.h"

extern "C" {
int nvmlInit_v2();
int nvmlShutdown();
const char* nvmlErrorString(int);
int nvmlDeviceGetCount_v2(unsigned*);
int nvmlDeviceGetHandleByIndex_v2(unsigned, void**);
int nvmlDeviceGetHandleByPciBusId_v2(const char*, void**);
int nvmlDeviceGetHandleByUUID(const char*, void**);
int nvmlDeviceGetUUID(void*, char*, unsigned);
int nvmlDeviceGetName(void*, char*, unsigned);
int nvmlDeviceGetIndex(void*, unsigned*);
int nvmlDeviceGetMemoryInfo(void*, void*);
int nvmlDeviceGetMemoryInfo_v2(void*, void*);
int nvmlDeviceGetClockInfo(void*, int, unsigned*);
int nvmlDeviceGetPciInfo_v3(void*, void*);
int nvmlDeviceGetComputeRunningProcesses(void*, unsigned*, void*);
int nvmlDeviceGetComputeRunningProcesses_v3(void*, unsigned*, void*);
int nvmlDeviceGetNvLinkRemoteDeviceType(void*, unsigned, int*);
int nvmlDeviceGetGpuFabricInfoV(void*, void*);
}

using namespace plimsoll::pretend;

namespace {

struct Nvml {
  Nvml() { REQUIRE(nvmlInit_v2() == 0); }
  ~Nvml() { CHECK(nvmlShutdown() == 0); }
  static void* device(unsigned index) {
    void* handle = nullptr;
    REQUIRE(nvmlDeviceGetHandleByIndex_v2(index, &handle) == 0);
    return handle;
  }
};

}  // namespace

TEST_CASE("every query fails before nvmlInit") {
  unsigned count = 0;
  CHECK(nvmlDeviceGetCount_v2(&count) == 1);
  CHECK(nvmlShutdown() == 1);
  CHECK(std::string(nvmlErrorString(1)) == "Uninitialized");
}

TEST_CASE("a card is found by index, bus and identifier") {
  Nvml nvml;
  unsigned count = 0;
  REQUIRE(nvmlDeviceGetCount_v2(&count) == 0);
  CHECK(count == static_cast<unsigned>(control::device_count()));
  void* first = nvml.device(0);
  void* other = nullptr;
  CHECK(nvmlDeviceGetHandleByIndex_v2(count, &other) == 2);

  struct {
    char legacy[16];
    unsigned domain, bus, device, id, subsystem;
    char bus_id[32];
  } pci{};
  REQUIRE(nvmlDeviceGetPciInfo_v3(first, &pci) == 0);
  CHECK(pci.bus == 1);
  CHECK(std::string(pci.bus_id) == "00000000:01:00.0");
  CHECK(std::string(pci.legacy) == "0000:01:00.0");
  REQUIRE(nvmlDeviceGetHandleByPciBusId_v2(pci.bus_id, &other) == 0);
  CHECK(other == first);
  CHECK(nvmlDeviceGetHandleByPciBusId_v2("0000:77:00.0", &other) == 6);

  char uuid[96];
  REQUIRE(nvmlDeviceGetUUID(first, uuid, sizeof(uuid)) == 0);
  CHECK(std::string(uuid).size() == 40);
  REQUIRE(nvmlDeviceGetHandleByUUID(uuid, &other) == 0);
  CHECK(other == first);
  CHECK(nvmlDeviceGetUUID(first, uuid, 8) == 7);
  unsigned index = 9;
  CHECK(nvmlDeviceGetIndex(first, &index) == 0);
  CHECK(index == 0);
  CHECK(nvmlDeviceGetIndex(nullptr, &index) == 2);
}

TEST_CASE("name and clocks are the profile's") {
  Nvml nvml;
  char name[96];
  REQUIRE(nvmlDeviceGetName(nvml.device(0), name, sizeof(name)) == 0);
  CHECK(name == control::profile().device_name);
  unsigned sm = 0, memory = 0;
  REQUIRE(nvmlDeviceGetClockInfo(nvml.device(0), 1, &sm) == 0);
  REQUIRE(nvmlDeviceGetClockInfo(nvml.device(0), 2, &memory) == 0);
  CHECK(sm == static_cast<unsigned>(control::profile().clock_khz / 1000));
  CHECK(memory == static_cast<unsigned>(control::profile().memory_clock_khz / 1000));
}

TEST_CASE("memory equals the counters of the device") {
  Nvml nvml;
  void* device = nvml.device(0);
  REQUIRE(machine().device(0).memory.charge(64 << 20, Reason::kHandles));
  const MemoryCounters books = control::memory(0);
  struct {
    unsigned long long total, free, used;
  } memory{};
  REQUIRE(nvmlDeviceGetMemoryInfo(device, &memory) == 0);
  CHECK(memory.total == books.capacity);
  CHECK(memory.used == books.used);
  CHECK(memory.total == memory.free + memory.used);
  struct {
    unsigned version;
    unsigned long long total, reserved, free, used;
  } second{40 | 2U << 24, 0, 0, 0, 0};
  REQUIRE(nvmlDeviceGetMemoryInfo_v2(device, &second) == 0);
  CHECK(second.used == books.used);
  second.version = 1;
  CHECK(nvmlDeviceGetMemoryInfo_v2(device, &second) == 25);
  machine().device(0).memory.discharge(64 << 20, Reason::kHandles);
}

TEST_CASE("this process is on the card once it has a context") {
  Nvml nvml;
  void* device = nvml.device(0);
  struct {
    unsigned pid;
    unsigned long long used;
    unsigned gpu_instance, compute_instance;
  } process[2]{};
  REQUIRE(machine().device(0).ensure_context(machine().profile()));
  unsigned count = 0;
  CHECK(nvmlDeviceGetComputeRunningProcesses_v3(device, &count, nullptr) == 7);
  CHECK(count == 1);
  count = 2;
  REQUIRE(nvmlDeviceGetComputeRunningProcesses_v3(device, &count, process) == 0);
  CHECK(count == 1);
  CHECK(process[0].pid == static_cast<unsigned>(getpid()));
  CHECK(process[0].used == control::memory(0).used);
  struct {
    unsigned pid;
    unsigned long long used;
  } old[1]{};
  count = 1;
  REQUIRE(nvmlDeviceGetComputeRunningProcesses(device, &count, old) == 0);
  CHECK(old[0].used == process[0].used);
}

TEST_CASE("a card has no links and no fabric") {
  Nvml nvml;
  int type = 0;
  CHECK(nvmlDeviceGetNvLinkRemoteDeviceType(nvml.device(0), 0, &type) == 3);
  struct {
    unsigned version;
    unsigned char uuid[16];
    int status;
    unsigned clique;
    unsigned char state;
    unsigned health;
    unsigned guard;
  } fabric{36 | 2U << 24, {}, 7, 7, 7, 7, 0xABCD};
  REQUIRE(nvmlDeviceGetGpuFabricInfoV(nvml.device(0), &fabric) == 0);
  CHECK(fabric.state == 0);
  CHECK(fabric.version == (36 | 2U << 24));
  CHECK(fabric.guard == 0xABCD);
}

TEST_CASE("a thread can query between its own initialisation and shutdown, independent of other threads") {
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int round = 0; round < 200; ++round) {
        unsigned count = 0;
        void* card = nullptr;
        char name[96] = {};
        unsigned long long memory[3] = {};
        failures += nvmlInit_v2() != 0;
        failures += nvmlDeviceGetCount_v2(&count) != 0 || count == 0;
        failures += nvmlDeviceGetHandleByIndex_v2(0, &card) != 0;
        failures += nvmlDeviceGetName(card, name, sizeof(name)) != 0 || control::profile().device_name != name;
        failures += nvmlDeviceGetMemoryInfo(card, memory) != 0 || memory[1] + memory[2] != memory[0];
        failures += nvmlShutdown() != 0;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(failures == 0);
  unsigned count = 0;
  CHECK(nvmlDeviceGetCount_v2(&count) == 1);  // All have shut down.
}
