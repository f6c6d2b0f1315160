#pragma once

#include <cstddef>
#include <cstdint>

/// The part of NVML's binary interface that this face uses.
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

struct Bar1Memory {
  Ulonglong total, free, used;
};

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

}  // namespace plimsoll::pretend::nvml
