#include "plimsoll/pretend/nvml/device.h"

#include <strings.h>

#include <atomic>
#include <cstdio>
#include <cstring>

#include "plimsoll/pretend/cuda/uuid.h"
#include "plimsoll/pretend/cuda/version.h"

namespace plimsoll::pretend::nvml {
namespace {

std::atomic<int> users{0};

int init() {
  users.fetch_add(1, std::memory_order_acq_rel);
  return kSuccess;
}

}  // namespace

bool initialized() { return users.load(std::memory_order_acquire) > 0; }

void* handle_of(int index) { return reinterpret_cast<void*>(static_cast<std::uintptr_t>(index) + 1); }

Found find(void* handle) {
  if (!initialized()) return {kUninitialized, 0};
  const auto number = reinterpret_cast<std::uintptr_t>(handle);
  if (number < 1 || number > static_cast<std::uintptr_t>(machine().device_count())) return {kInvalidArgument, 0};
  return {kSuccess, static_cast<int>(number - 1)};
}

std::string uuid_of(int index) {
  char bytes[16];
  fill_uuid(bytes, index);
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    char hex[3];
    std::snprintf(hex, sizeof(hex), "%02x", static_cast<unsigned char>(bytes[i]));
    text += hex;
  }
  return text;
}

std::string bus_id_of(int index) {
  char text[32];
  std::snprintf(text, sizeof(text), "00000000:%02X:00.0", static_cast<unsigned>(index) + 1);
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

PLIMSOLL_API int nvmlInit() { return init(); }
PLIMSOLL_API int nvmlInit_v2() { return init(); }
PLIMSOLL_API int nvmlInitWithFlags(unsigned /*flags*/) { return init(); }

PLIMSOLL_API int nvmlShutdown() {
  if (users.fetch_sub(1, std::memory_order_acq_rel) > 0) return kSuccess;
  users.fetch_add(1, std::memory_order_acq_rel);
  return kUninitialized;
}

PLIMSOLL_API const char* nvmlErrorString(int result) {
  switch (result) {
    case kSuccess:
      return "Success";
    case kUninitialized:
      return "Uninitialized";
    case kInvalidArgument:
      return "Invalid Argument";
    case kNotSupported:
      return "Not Supported";
    case kNoPermission:
      return "Insufficient Permissions";
    case kNotFound:
      return "Not Found";
    case kInsufficientSize:
      return "Insufficient Size";
    case kDriverNotLoaded:
      return "Driver Not Loaded";
    case kArgumentVersionMismatch:
      return "Argument Version Mismatch";
    default:
      return "Unknown Error";
  }
}

/// A driver that supports the CUDA version of the build, and 80 characters are promised to be enough.
PLIMSOLL_API int nvmlSystemGetDriverVersion(char* version, unsigned capacity) {
  if (!initialized()) return kUninitialized;
  return give_text(kCudaMajor >= 13 ? "580.65.06" : "550.54.14", version, capacity);
}

PLIMSOLL_API int nvmlSystemGetNVMLVersion(char* version, unsigned capacity) {
  if (!initialized()) return kUninitialized;
  return give_text(kCudaMajor >= 13 ? "13.580.65.06" : "12.550.54.14", version, capacity);
}

PLIMSOLL_API int nvmlSystemGetCudaDriverVersion(int* version) { return nvml::give(version, kCudaVersion); }
PLIMSOLL_API int nvmlSystemGetCudaDriverVersion_v2(int* version) { return nvml::give(version, kCudaVersion); }

PLIMSOLL_API int nvmlDeviceGetCount_v2(unsigned* count) {
  return initialized() ? nvml::give(count, machine().device_count()) : kUninitialized;
}
PLIMSOLL_API int nvmlDeviceGetCount(unsigned* count) { return nvmlDeviceGetCount_v2(count); }

PLIMSOLL_API int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** handle) {
  if (!initialized()) return kUninitialized;
  if (index >= static_cast<unsigned>(machine().device_count())) return kInvalidArgument;
  return nvml::give(handle, handle_of(static_cast<int>(index)));
}
PLIMSOLL_API int nvmlDeviceGetHandleByIndex(unsigned index, void** handle) {
  return nvmlDeviceGetHandleByIndex_v2(index, handle);
}

/// "domain:bus:device.function" in hexadecimal; the domain may have any number of digits.
PLIMSOLL_API int nvmlDeviceGetHandleByPciBusId_v2(const char* bus_id, void** handle) {
  if (!initialized()) return kUninitialized;
  unsigned domain = 0, bus = 0, device = 0;
  if (bus_id == nullptr || std::sscanf(bus_id, "%x:%x:%x", &domain, &bus, &device) != 3) return kInvalidArgument;
  if (domain != 0 || device != 0 || bus < 1 || bus > static_cast<unsigned>(machine().device_count())) return kNotFound;
  return nvml::give(handle, handle_of(static_cast<int>(bus) - 1));
}
PLIMSOLL_API int nvmlDeviceGetHandleByPciBusId(const char* bus_id, void** handle) {
  return nvmlDeviceGetHandleByPciBusId_v2(bus_id, handle);
}

PLIMSOLL_API int nvmlDeviceGetHandleByUUID(const char* uuid, void** handle) {
  if (!initialized()) return kUninitialized;
  if (uuid == nullptr) return kInvalidArgument;
  for (int index = 0; index < machine().device_count(); ++index) {
    if (strcasecmp(uuid, uuid_of(index).c_str()) == 0) return nvml::give(handle, handle_of(index));
  }
  return kNotFound;
}
