#include "plimsoll/pretend/nvml/device.h"

#include <strings.h>

#include <atomic>
#include <cstdio>
#include <cstring>

#include "plimsoll/pretend/cuda/version.h"
#include "plimsoll/pretend/model/visible_devices.h"

namespace plimsoll::pretend::nvml {
namespace {

std::atomic<int> users{0};

const Device* device_in_use(int card) {
  Machine* const machine = machine_in_use();
  return machine != nullptr ? machine->device_of_card(card) : nullptr;
}

}  // namespace

bool initialized() { return users.load(std::memory_order_acquire) > 0; }

void* handle_of(int card) { return reinterpret_cast<void*>(static_cast<std::uintptr_t>(card) + 1); }

Found find(void* handle) {
  if (!initialized()) return {kUninitialized, 0};
  const auto number = reinterpret_cast<std::uintptr_t>(handle);
  if (number < 1 || number > static_cast<std::uintptr_t>(installed().cards)) return {kInvalidArgument, 0};
  return {kSuccess, static_cast<int>(number - 1)};
}

MemoryCounters memory_of(int card) {
  if (const Device* const device = device_in_use(card)) return device->memory.counters();
  MemoryCounters empty;
  empty.capacity = installed().profile.memory;
  return empty;
}

bool has_context(int card) {
  const Device* const device = device_in_use(card);
  return device != nullptr && device->has_context();
}

std::string bus_id_of(int card) {
  char text[32];
  std::snprintf(text, sizeof(text), "00000000:%02X:00.0", static_cast<unsigned>(card) + 1);
  return text;
}

int give_text(const std::string& text, char* out, unsigned capacity) {
  if (out == nullptr) return kInvalidArgument;
  if (text.size() + 1 > capacity) return kInsufficientSize;
  std::memcpy(out, text.c_str(), text.size() + 1);
  return kSuccess;
}

}  // namespace plimsoll::pretend::nvml

using namespace plimsoll::pretend;
using namespace plimsoll::pretend::nvml;

PLIMSOLL_API int nvmlInit() {
  users.fetch_add(1, std::memory_order_acq_rel);
  return kSuccess;
}
PLIMSOLL_ALIAS(nvmlInit_v2, nvmlInit);
PLIMSOLL_ALIAS(nvmlInitWithFlags, nvmlInit);

PLIMSOLL_API int nvmlShutdown() {
  // An extra shutdown must not affect a thread that initialised: the count never becomes negative.
  int seen = users.load(std::memory_order_acquire);
  while (seen > 0) {
    if (users.compare_exchange_weak(seen, seen - 1, std::memory_order_acq_rel)) return kSuccess;
  }
  return kUninitialized;
}

PLIMSOLL_API const char* nvmlErrorString(int result) {
  static constexpr StatusName kNames[] = {
      {kSuccess, "Success"},
      {kUninitialized, "Uninitialized"},
      {kInvalidArgument, "Invalid Argument"},
      {kNotSupported, "Not Supported"},
      {kNoPermission, "Insufficient Permissions"},
      {kNotFound, "Not Found"},
      {kInsufficientSize, "Insufficient Size"},
      {kDriverNotLoaded, "Driver Not Loaded"},
      {kArgumentVersionMismatch, "Argument Version Mismatch"},
  };
  return name_of(kNames, result, "Unknown Error");
}

/// A driver version that supports the build's CUDA version. The interface promises that 80 characters are enough.
PLIMSOLL_API int nvmlSystemGetDriverVersion(char* version, unsigned capacity) {
  if (!initialized()) return kUninitialized;
  return give_text(kCudaMajor >= 13 ? "580.65.06" : "550.54.14", version, capacity);
}

PLIMSOLL_API int nvmlSystemGetNVMLVersion(char* version, unsigned capacity) {
  if (!initialized()) return kUninitialized;
  return give_text(kCudaMajor >= 13 ? "13.580.65.06" : "12.550.54.14", version, capacity);
}

PLIMSOLL_API int nvmlSystemGetCudaDriverVersion(int* version) { return nvml::give(version, kCudaVersion); }
PLIMSOLL_ALIAS(nvmlSystemGetCudaDriverVersion_v2, nvmlSystemGetCudaDriverVersion);

PLIMSOLL_API int nvmlDeviceGetCount_v2(unsigned* count) {
  return initialized() ? nvml::give(count, installed().cards) : kUninitialized;
}
PLIMSOLL_ALIAS(nvmlDeviceGetCount, nvmlDeviceGetCount_v2);

PLIMSOLL_API int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** handle) {
  if (!initialized()) return kUninitialized;
  if (index >= static_cast<unsigned>(installed().cards)) return kInvalidArgument;
  return nvml::give(handle, handle_of(static_cast<int>(index)));
}
PLIMSOLL_ALIAS(nvmlDeviceGetHandleByIndex, nvmlDeviceGetHandleByIndex_v2);

/// "domain:bus:device.function" in hexadecimal; the domain may have any number of digits.
PLIMSOLL_API int nvmlDeviceGetHandleByPciBusId_v2(const char* bus_id, void** handle) {
  if (!initialized()) return kUninitialized;
  unsigned domain = 0, bus = 0, device = 0;
  if (bus_id == nullptr || std::sscanf(bus_id, "%x:%x:%x", &domain, &bus, &device) != 3) return kInvalidArgument;
  if (domain != 0 || device != 0 || bus < 1 || bus > static_cast<unsigned>(installed().cards)) return kNotFound;
  return nvml::give(handle, handle_of(static_cast<int>(bus) - 1));
}
PLIMSOLL_ALIAS(nvmlDeviceGetHandleByPciBusId, nvmlDeviceGetHandleByPciBusId_v2);

PLIMSOLL_API int nvmlDeviceGetHandleByUUID(const char* uuid, void** handle) {
  if (!initialized()) return kUninitialized;
  if (uuid == nullptr) return kInvalidArgument;
  for (int card = 0; card < installed().cards; ++card) {
    if (strcasecmp(uuid, uuid_text(card).c_str()) == 0) return nvml::give(handle, handle_of(card));
  }
  return kNotFound;
}
