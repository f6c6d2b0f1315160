#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "plimsoll/pretend/model/visible_devices.h"
#include "plimsoll/pretend/nvml/device.h"

/// The properties of a card. The numbers come from the profile and the device's counters. Values of a running card
/// (load, temperature, power) are those of an idle one.
namespace plimsoll::pretend::nvml {
namespace {

constexpr unsigned kIdleCelsius = 30;
constexpr unsigned kIdleMilliwatts = 70'000;
constexpr unsigned kNoInstance = 0xFFFFFFFF;

void fill(ProcessInfoV1& info, unsigned pid, Bytes used) { info = {pid, used}; }
void fill(ProcessInfo& info, unsigned pid, Bytes used) { info = {pid, used, kNoInstance, kNoInstance}; }

/// A pretend card knows only this process, once it has a context on the card.
template <class Info>
int compute_processes(void* handle, unsigned* count, Info* infos) {
  return with_device(handle, [&](int card) -> int {
    if (count == nullptr) return kInvalidArgument;
    const unsigned capacity = *count;
    *count = has_context(card) ? 1 : 0;
    if (*count == 0) return kSuccess;
    if (capacity == 0) return kInsufficientSize;
    if (infos == nullptr) return kInvalidArgument;
    fill(infos[0], static_cast<unsigned>(getpid()), memory_of(card).used);
    return kSuccess;
  });
}

}  // namespace
}  // namespace plimsoll::pretend::nvml

using namespace plimsoll::pretend;
using namespace plimsoll::pretend::nvml;

PLIMSOLL_API int nvmlDeviceGetName(void* handle, char* name, unsigned capacity) {
  return with_device(handle, [&](int) { return give_text(installed().profile.device_name, name, capacity); });
}

PLIMSOLL_API int nvmlDeviceGetUUID(void* handle, char* uuid, unsigned capacity) {
  return with_device(handle, [&](int card) { return give_text(uuid_text(card), uuid, capacity); });
}

PLIMSOLL_API int nvmlDeviceGetIndex(void* handle, unsigned* index) {
  return with_device(handle, [&](int card) { return nvml::give(index, card); });
}

PLIMSOLL_ALIAS(nvmlDeviceGetMinorNumber, nvmlDeviceGetIndex);

PLIMSOLL_API int nvmlDeviceGetMemoryInfo(void* handle, Memory* memory) {
  return with_device(handle, [&](int card) -> int {
    if (memory == nullptr) return kInvalidArgument;
    const MemoryCounters counters = memory_of(card);
    *memory = {counters.capacity, counters.capacity - counters.used, counters.used};
    return kSuccess;
  });
}

PLIMSOLL_API int nvmlDeviceGetMemoryInfo_v2(void* handle, MemoryV2* memory) {
  constexpr unsigned kVersion2 = sizeof(MemoryV2) | 2U << 24;
  return with_device(handle, [&](int card) -> int {
    if (memory == nullptr) return kInvalidArgument;
    if (memory->version != kVersion2) return kArgumentVersionMismatch;
    const MemoryCounters counters = memory_of(card);
    *memory = {kVersion2, counters.capacity, 0, counters.capacity - counters.used, counters.used};
    return kSuccess;
  });
}

PLIMSOLL_API int nvmlDeviceGetUtilizationRates(void* handle, Utilization* rates) {
  return with_device(handle, [&](int) { return nvml::give(rates, Utilization{0, 0}); });
}

PLIMSOLL_API int nvmlDeviceGetTemperature(void* handle, int sensor, unsigned* celsius) {
  return with_device(handle,
                     [&](int) -> int { return sensor == 0 ? nvml::give(celsius, kIdleCelsius) : kInvalidArgument; });
}

PLIMSOLL_API int nvmlDeviceGetPowerUsage(void* handle, unsigned* milliwatts) {
  return with_device(handle, [&](int) { return nvml::give(milliwatts, kIdleMilliwatts); });
}

/// `type`: 0 graphics, 1 SM, 2 memory, 3 video.
PLIMSOLL_API int nvmlDeviceGetClockInfo(void* handle, int type, unsigned* mhz) {
  return with_device(handle, [&](int) -> int {
    const Profile& profile = installed().profile;
    if (type < 0 || type > 3) return kInvalidArgument;
    return nvml::give(mhz, (type == 2 ? profile.memory_clock_khz : profile.clock_khz) / 1000);
  });
}
PLIMSOLL_ALIAS(nvmlDeviceGetMaxClockInfo, nvmlDeviceGetClockInfo);

PLIMSOLL_API int nvmlDeviceGetCudaComputeCapability(void* handle, int* major, int* minor) {
  return with_device(handle, [&](int) -> int {
    if (major == nullptr || minor == nullptr) return kInvalidArgument;
    *major = installed().profile.compute_major;
    *minor = installed().profile.compute_minor;
    return kSuccess;
  });
}

PLIMSOLL_API int nvmlDeviceGetMemoryBusWidth(void* handle, unsigned* bits) {
  return with_device(handle, [&](int) { return nvml::give(bits, installed().profile.memory_bus_bits); });
}

PLIMSOLL_API int nvmlDeviceGetPciInfo(void* handle, PciInfo* info) {
  return with_device(handle, [&](int card) -> int {
    if (info == nullptr) return kInvalidArgument;
    constexpr unsigned kVendor = 0x10DE;
    *info = PciInfo{};
    info->bus = static_cast<unsigned>(card) + 1;
    info->pci_device_id = kVendor;
    const std::string bus_id = bus_id_of(card);
    std::snprintf(info->bus_id, sizeof(info->bus_id), "%s", bus_id.c_str());
    std::snprintf(info->bus_id_legacy, sizeof(info->bus_id_legacy), "%s", bus_id.c_str() + 4);
    return kSuccess;
  });
}
PLIMSOLL_ALIAS(nvmlDeviceGetPciInfo_v2, nvmlDeviceGetPciInfo);
PLIMSOLL_ALIAS(nvmlDeviceGetPciInfo_v3, nvmlDeviceGetPciInfo);

PLIMSOLL_API int nvmlDeviceGetComputeRunningProcesses(void* handle, unsigned* count, ProcessInfoV1* infos) {
  return compute_processes(handle, count, infos);
}
PLIMSOLL_API int nvmlDeviceGetComputeRunningProcesses_v2(void* handle, unsigned* count, ProcessInfo* infos) {
  return compute_processes(handle, count, infos);
}
PLIMSOLL_ALIAS(nvmlDeviceGetComputeRunningProcesses_v3, nvmlDeviceGetComputeRunningProcesses_v2);
PLIMSOLL_API int nvmlDeviceGetGraphicsRunningProcesses_v3(void* handle, unsigned* count, void*) {
  return with_device(handle, [&](int) { return nvml::give(count, 0U); });
}
PLIMSOLL_ALIAS(nvmlDeviceGetMPSComputeRunningProcesses_v3, nvmlDeviceGetGraphicsRunningProcesses_v3);

/// As cudaDeviceCanAccessPeer. The reported reason is the chipset, as the driver reports for GeForce cards.
PLIMSOLL_API int nvmlDeviceGetP2PStatus(void* first, void* second, int /*capability*/, int* status) {
  constexpr int kOk = 0;
  constexpr int kChipsetNotSupported = 1;
  return with_device(first, [&](int one) {
    return with_device(second, [&](int other) {
      return nvml::give(status, one == other || installed().profile.peer_access ? kOk : kChipsetNotSupported);
    });
  });
}

// Parts of a card (MIG) and NVLink. A profile does not say which link connects which cards, so callers that plan routes
// find no links.
PLIMSOLL_API int nvmlDeviceGetMigMode(void* handle) {
  return with_device(handle, [](int) -> int { return kNotSupported; });
}
PLIMSOLL_ALIAS(nvmlDeviceGetNvLinkState, nvmlDeviceGetMigMode);
PLIMSOLL_ALIAS(nvmlDeviceGetNvLinkCapability, nvmlDeviceGetMigMode);
PLIMSOLL_ALIAS(nvmlDeviceGetNvLinkRemoteDeviceType, nvmlDeviceGetMigMode);
PLIMSOLL_ALIAS(nvmlDeviceGetNvLinkRemotePciInfo_v2, nvmlDeviceGetMigMode);

// State 0: the card is not part of a fabric between machines.
PLIMSOLL_API int nvmlDeviceGetGpuFabricInfo(void* handle, FabricInfo* info) {
  return with_device(handle, [&](int) { return nvml::give(info, FabricInfo{}); });
}
PLIMSOLL_API int nvmlDeviceGetGpuFabricInfoV(void* handle, FabricInfoV* info) {
  return with_device(handle, [&](int) -> int {
    if (info == nullptr) return kInvalidArgument;
    const unsigned version = info->version;
    if (version >> 24 != 2 && version >> 24 != 3) return kArgumentVersionMismatch;
    // The version contains the size of the caller's struct.
    std::memset(static_cast<void*>(info), 0, std::max<std::size_t>(version & 0xFFFFFF, sizeof(FabricInfoV)));
    info->version = version;
    return kSuccess;
  });
}
