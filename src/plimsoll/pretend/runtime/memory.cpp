// Memory: device, pinned, registered, managed; pointer attributes.

#include <cstring>

#include "plimsoll/pretend/model/streams/functions.h"
#include "plimsoll/pretend/runtime/status.h"

using namespace plimsoll::pretend;
using namespace plimsoll::pretend::runtime;
using plimsoll::Bytes;

PLIMSOLL_API cudaError_t cudaMalloc(void** pointer, size_t bytes) {
  if (pointer == nullptr) return status(cudaErrorInvalidValue);
  *pointer = nullptr;
  if (bytes == 0) return cudaSuccess;
  const auto address = ensure_context().memory.allocate(bytes);
  if (!address) return status(cudaErrorMemoryAllocation);
  *pointer = reinterpret_cast<void*>(*address);
  return cudaSuccess;
}

PLIMSOLL_API cudaError_t cudaMallocPitch(void** pointer, size_t* pitch, size_t width, size_t height) {
  *pitch = plimsoll::round_up(width, 512);
  return cudaMalloc(pointer, *pitch * height);
}

PLIMSOLL_API cudaError_t cudaFree(void* pointer) {
  if (pointer == nullptr) {
    ensure_context();
    return cudaSuccess;
  }
  const auto address = reinterpret_cast<Address>(pointer);
  const auto device = machine().device_of(pointer);
  if (!device) return status(machine().host().free(pointer) ? cudaSuccess : cudaErrorInvalidValue);
  Device& owner = machine().device(*device);
  const bool freed = owner.memory.free(address) || owner.default_pool.free(address) || owner.made_pools.free(address);
  return status(freed ? cudaSuccess : cudaErrorInvalidValue);
}

PLIMSOLL_API cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  const MemoryCounters counters = ensure_context().memory.counters();
  *free = counters.capacity - counters.used;
  *total = counters.capacity;
  return cudaSuccess;
}

PLIMSOLL_API cudaError_t cudaHostAlloc(void** pointer, size_t bytes, unsigned flags) {
  const auto start = machine().host().allocate(bytes, HostMemory::Kind::kPinned, flags, ensure_context().index);
  if (!start) return status(cudaErrorMemoryAllocation);
  *pointer = *start;
  return cudaSuccess;
}

PLIMSOLL_API cudaError_t cudaMallocHost(void** pointer, size_t bytes) { return cudaHostAlloc(pointer, bytes, 0); }

PLIMSOLL_API cudaError_t cudaFreeHost(void* pointer) {
  if (pointer == nullptr || machine().host().free(pointer)) return cudaSuccess;
  return status(cudaErrorInvalidValue);
}

PLIMSOLL_API cudaError_t cudaHostRegister(void* pointer, size_t bytes, unsigned flags) {
  if (pointer == nullptr || bytes == 0) return status(cudaErrorInvalidValue);
  if (machine().host().add(pointer, bytes, flags, ensure_context().index)) return cudaSuccess;
  return status(cudaErrorHostMemoryAlreadyRegistered);
}

PLIMSOLL_API cudaError_t cudaHostUnregister(void* pointer) {
  return status(machine().host().remove(pointer) ? cudaSuccess : cudaErrorHostMemoryNotRegistered);
}

PLIMSOLL_API cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned) {
  if (!machine().host().find(host)) return status(cudaErrorInvalidValue);
  *device = host;
  return cudaSuccess;
}

PLIMSOLL_API cudaError_t cudaHostGetFlags(unsigned* flags, void* host) {
  const auto range = machine().host().find(host);
  if (!range) return status(cudaErrorInvalidValue);
  *flags = range->flags;
  return cudaSuccess;
}

static bool is_managed(const void* pointer) {
  const auto range = machine().host().find(pointer);
  return range && range->kind == HostMemory::Kind::kManaged;
}

PLIMSOLL_API cudaError_t cudaMallocManaged(void** pointer, size_t bytes, unsigned flags) {
  const auto start = machine().host().allocate(bytes, HostMemory::Kind::kManaged, flags, ensure_context().index);
  if (!start) return status(cudaErrorMemoryAllocation);
  *pointer = *start;
  return cudaSuccess;
}

// Managed memory is always host memory here, for every preferred location.
#if PLIMSOLL_CUDA_MAJOR >= 13
using Place = cudaMemLocation;
PLIMSOLL_API cudaError_t cudaMemPrefetchAsync(const void* start, size_t, Place, unsigned, cudaStream_t handle) {
#else
using Place = int;
PLIMSOLL_API cudaError_t cudaMemPrefetchAsync(const void* start, size_t, Place, cudaStream_t handle) {
#endif
  if (!is_managed(start)) return status(cudaErrorInvalidValue);
  return with_stream(handle, [](Stream&) { return cudaSuccess; });
}

PLIMSOLL_API cudaError_t cudaMemAdvise(const void* start, size_t, cudaMemoryAdvise, Place) {
  return status(is_managed(start) ? cudaSuccess : cudaErrorInvalidValue);
}

PLIMSOLL_API cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* out, const void* pointer) {
  std::memset(out, 0, sizeof *out);
  if (const auto device = machine().device_of(pointer)) {
    out->type = cudaMemoryTypeDevice;
    out->device = *device;
    out->devicePointer = const_cast<void*>(pointer);
    return cudaSuccess;
  }
  if (const auto range = machine().host().find(pointer)) {
    out->type = range->kind == HostMemory::Kind::kManaged ? cudaMemoryTypeManaged : cudaMemoryTypeHost;
    out->device = range->device;
    out->devicePointer = const_cast<void*>(pointer);
    out->hostPointer = const_cast<void*>(pointer);
    return cudaSuccess;
  }
  out->type = cudaMemoryTypeUnregistered;
  out->device = cudaInvalidDeviceId;
  out->hostPointer = const_cast<void*>(pointer);
  return cudaSuccess;
}

PLIMSOLL_API cudaError_t cudaGetSymbolAddress(void** pointer, const void* symbol) {
  const auto place = functions().variable(symbol);
  if (place.offset + place.bytes > DeviceMemory::kVariables) return status(cudaErrorInvalidSymbol);
  *pointer = reinterpret_cast<void*>(ensure_context().memory.variables() + place.offset);
  return cudaSuccess;
}

PLIMSOLL_API cudaError_t cudaGetSymbolSize(size_t* bytes, const void* symbol) {
  *bytes = functions().variable(symbol).bytes;
  return cudaSuccess;
}

PLIMSOLL_API cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, cudaChannelFormatKind kind) {
  return {x, y, z, w, kind};
}

// Memory cannot be shared between processes: each has its own machine.
PLIMSOLL_API cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t*, void*) { return refused("cudaIpcGetMemHandle"); }
PLIMSOLL_API cudaError_t cudaIpcOpenMemHandle(void**, cudaIpcMemHandle_t, unsigned) {
  return refused("cudaIpcOpenMemHandle");
}
PLIMSOLL_API cudaError_t cudaIpcCloseMemHandle(void*) { return refused("cudaIpcCloseMemHandle"); }
PLIMSOLL_API cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t*, cudaEvent_t) {
  return refused("cudaIpcGetEventHandle");
}
PLIMSOLL_API cudaError_t cudaIpcOpenEventHandle(cudaEvent_t*, cudaIpcEventHandle_t) {
  return refused("cudaIpcOpenEventHandle");
}
