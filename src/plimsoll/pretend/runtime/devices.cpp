// Devices: count, current device, properties.

#include <cstdio>
#include <cstring>
#include <set>

#include "plimsoll/pretend/cuda/attributes.h"
#include "plimsoll/pretend/cuda/version.h"
#include "plimsoll/pretend/model/visible_devices.h"
#include "plimsoll/pretend/runtime/status.h"

using namespace plimsoll::pretend;
using namespace plimsoll::pretend::runtime;

PLIMSOLL_API cudaError_t cudaGetDeviceCount(int* count) {
  *count = machine().device_count();
  return *count > 0 ? cudaSuccess : status(cudaErrorNoDevice);
}

PLIMSOLL_API cudaError_t cudaGetDevice(int* device) {
  *device = current_device();
  return cudaSuccess;
}

PLIMSOLL_API cudaError_t cudaSetDevice(int device) {
  if (!has_device(device)) return status(cudaErrorInvalidDevice);
  set_current_device(device);
  ensure_context();
  return cudaSuccess;
}

PLIMSOLL_API cudaError_t cudaSetDeviceFlags(unsigned flags) {
  machine().device(current_device()).flags.store(flags, std::memory_order_relaxed);
  return cudaSuccess;
}

PLIMSOLL_API cudaError_t cudaGetDeviceFlags(unsigned* flags) {
  *flags = machine().device(current_device()).flags.load(std::memory_order_relaxed);
  return cudaSuccess;
}

PLIMSOLL_API cudaError_t cudaInitDevice(int device, unsigned, unsigned) {
  if (!has_device(device)) return status(cudaErrorInvalidDevice);
  machine().device(device).ensure_context(machine().profile());
  return cudaSuccess;
}

PLIMSOLL_API cudaError_t cudaDeviceSynchronize() {
  if (machine().forbid_in_captures_of(current_device())) return status(cudaErrorStreamCaptureUnsupported);
  machine().synchronize(ensure_context().index, "cudaDeviceSynchronize");
  return cudaSuccess;
}

PLIMSOLL_API cudaError_t cudaDriverGetVersion(int* version) {
  *version = kCudaVersion;
  return cudaSuccess;
}
PLIMSOLL_ALIAS(cudaRuntimeGetVersion, cudaDriverGetVersion);

PLIMSOLL_API cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  if (!has_device(device)) return status(cudaErrorInvalidDevice);
  *value = device_attribute(machine().profile(), machine().device(device).card, static_cast<int>(attribute));
  return cudaSuccess;
}

PLIMSOLL_API cudaError_t cudaDeviceGetPCIBusId(char* text, int capacity, int device) {
  if (!has_device(device)) return status(cudaErrorInvalidDevice);
  std::snprintf(text, static_cast<std::size_t>(capacity), "0000:%02x:00.0", machine().device(device).card + 1);
  return cudaSuccess;
}

PLIMSOLL_API cudaError_t cudaDeviceGetByPCIBusId(int* device, const char* text) {
  unsigned bus = 0;
  if (std::sscanf(text, "%*x:%x", &bus) != 1) return status(cudaErrorInvalidDevice);
  const Device* const found = machine().device_of_card(static_cast<int>(bus) - 1);
  if (found == nullptr) return status(cudaErrorInvalidDevice);
  *device = found->index;
  return cudaSuccess;
}

PLIMSOLL_API cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  if (least != nullptr) *least = Stream::kLeastPriority;
  if (greatest != nullptr) *greatest = Stream::kGreatestPriority;
  return cudaSuccess;
}

PLIMSOLL_API cudaError_t cudaDeviceGetLimit(size_t* value, cudaLimit limit) {
  *value = ensure_context().limit(limit);
  return cudaSuccess;
}

PLIMSOLL_API cudaError_t cudaDeviceSetLimit(cudaLimit limit, size_t value) {
  ensure_context().set_limit(limit, value);
  return cudaSuccess;
}

PLIMSOLL_API cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  if (!has_device(device) || !has_device(peer)) return status(cudaErrorInvalidDevice);
  *can = machine().are_peers(device, peer) ? 1 : 0;
  return cudaSuccess;
}

namespace {

/// Pairs of devices with enabled peer access.
struct Peers {
  std::mutex mutex;
  std::set<std::pair<int, int>> enabled;
};

Peers& peers() {
  static auto* const instance = new Peers;
  return *instance;
}

}  // namespace

PLIMSOLL_API cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned) {
  if (!has_device(peer) || peer == current_device()) return status(cudaErrorInvalidDevice);
  if (!machine().are_peers(current_device(), peer)) return status(cudaErrorPeerAccessUnsupported);
  std::lock_guard lock(peers().mutex);
  if (!peers().enabled.insert({current_device(), peer}).second) return status(cudaErrorPeerAccessAlreadyEnabled);
  return cudaSuccess;
}

PLIMSOLL_API cudaError_t cudaDeviceDisablePeerAccess(int peer) {
  std::lock_guard lock(peers().mutex);
  if (peers().enabled.erase({current_device(), peer}) == 0) return status(cudaErrorPeerAccessNotEnabled);
  return cudaSuccess;
}

PLIMSOLL_API cudaError_t cudaGetDeviceProperties(cudaDeviceProp* out, int device) {
  if (!has_device(device)) return status(cudaErrorInvalidDevice);
  const Profile& profile = machine().profile();
  const int card = machine().device(device).card;
  const auto attribute = [&](int which) { return device_attribute(profile, card, which); };
  std::memset(out, 0, sizeof *out);
  std::snprintf(out->name, sizeof out->name, "%s", profile.device_name.c_str());
  fill_uuid(out->uuid.bytes, card);
  out->totalGlobalMem = profile.memory;
  out->sharedMemPerBlock = profile.shared_per_block;
  out->sharedMemPerBlockOptin = profile.shared_per_block_optin;
  out->sharedMemPerMultiprocessor = profile.shared_per_multiprocessor;
  out->reservedSharedMemPerBlock = 1024;
  out->regsPerBlock = profile.registers_per_multiprocessor;
  out->regsPerMultiprocessor = profile.registers_per_multiprocessor;
  out->warpSize = 32;
  out->memPitch = 0x7fffffff;
  out->maxThreadsPerBlock = 1024;
  out->maxThreadsDim[0] = 1024;
  out->maxThreadsDim[1] = 1024;
  out->maxThreadsDim[2] = 64;
  out->maxGridSize[0] = 0x7fffffff;
  out->maxGridSize[1] = 65535;
  out->maxGridSize[2] = 65535;
  out->totalConstMem = 65536;
  out->major = profile.compute_major;
  out->minor = profile.compute_minor;
  out->textureAlignment = 512;
  out->texturePitchAlignment = 32;
  out->multiProcessorCount = profile.multiprocessors;
  out->maxThreadsPerMultiProcessor = profile.threads_per_multiprocessor;
  out->maxBlocksPerMultiProcessor = profile.blocks_per_multiprocessor;
  out->l2CacheSize = static_cast<int>(profile.l2_cache);
  out->memoryBusWidth = profile.memory_bus_bits;
  out->pciBusID = card + 1;
  out->asyncEngineCount = 3;
  out->canMapHostMemory = 1;
  out->concurrentKernels = 1;
  out->ECCEnabled = 1;
  out->unifiedAddressing = 1;
  out->streamPrioritiesSupported = 1;
  out->globalL1CacheSupported = 1;
  out->localL1CacheSupported = 1;
  out->managedMemory = 1;
  out->concurrentManagedAccess = 1;
  out->cooperativeLaunch = 1;
  out->memoryPoolsSupported = 1;
  out->clusterLaunch = attribute(CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH);
#if CUDART_VERSION < 13000
  out->clockRate = profile.clock_khz;
  out->memoryClockRate = profile.memory_clock_khz;
  out->deviceOverlap = 1;
#endif
  return cudaSuccess;
}
