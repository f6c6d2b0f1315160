#pragma once

#include <cstdint>
#include <string>

#include "plimsoll/pretend/model/machine.h"
#include "plimsoll/pretend/model/object.h"

namespace plimsoll::pretend::nvml {

enum Return : int {
  kSuccess = 0,
  kUninitialized = 1,
  kInvalidArgument = 2,
  kNotSupported = 3,
  kNoPermission = 4,
  kNotFound = 6,
  kInsufficientSize = 7,
  kDriverNotLoaded = 9,
  kArgumentVersionMismatch = 25,
  kUnknown = 999,
};

using Ulonglong = unsigned long long;

struct Memory {
  Ulonglong total, free, used;
};
static_assert(sizeof(Memory) == 24);

struct MemoryV2 {
  unsigned version;
  Ulonglong total, reserved, free, used;
};
static_assert(sizeof(MemoryV2) == 40);

struct Utilization {
  unsigned gpu, memory;
};

struct PciInfo {
  char bus_id_legacy[16];
  unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
  char bus_id[32];
};
static_assert(sizeof(PciInfo) == 68);

struct ProcessInfoV1 {
  unsigned pid;
  Ulonglong used;
};
static_assert(sizeof(ProcessInfoV1) == 16);

struct ProcessInfo {
  unsigned pid;
  Ulonglong used;
  unsigned gpu_instance, compute_instance;
};
static_assert(sizeof(ProcessInfo) == 24);

struct FabricInfo {
  unsigned char cluster_uuid[16];
  int status;
  unsigned clique_id;
  unsigned char state;
};
static_assert(sizeof(FabricInfo) == 28);

/// Versions 2 and 3 are equal up to health_mask; version 3 adds a summary.
struct FabricInfoV {
  unsigned version;
  unsigned char cluster_uuid[16];
  int status;
  unsigned clique_id;
  unsigned char state;
  unsigned health_mask;
};
static_assert(sizeof(FabricInfoV) == 36);

/// nvmlDevice_t is a card's number plus one, as a pointer. NVML knows all installed cards and does not create the
/// machine (see `installed`).
void* handle_of(int card);

/// The card behind a handle, as a status and a number.
struct Found {
  int status;
  int card;
};
Found find(void* handle);

/// Whether nvmlInit was called more often than nvmlShutdown.
bool initialized();

/// The counters of a card; zero if the card is not in use.
MemoryCounters memory_of(int card);
/// Whether this process has a context on the card.
bool has_context(int card);

/// The PCI address: domain 0, bus card + 1, device 0, as in the runtime's device properties.
std::string bus_id_of(int card);

/// Copies `text` with its terminator to the caller's buffer.
int give_text(const std::string& text, char* out, unsigned capacity);

/// Runs `body(card)` for a valid handle.
template <class Body>
int with_device(void* handle, Body&& body) {
  const Found found = find(handle);
  return found.status == kSuccess ? body(found.card) : found.status;
}

/// Writes `value` through a pointer that must not be null.
template <class T, class U>
int give(T* out, U value) {
  return pretend::give(out, value, kInvalidArgument);
}

}  // namespace plimsoll::pretend::nvml
