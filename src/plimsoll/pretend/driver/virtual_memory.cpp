// The virtual-memory calls behind torch's expandable segments: addresses separate from physical memory.

#include <cstring>

#include "plimsoll/pretend/driver/driver.h"

using namespace plimsoll::pretend;
using namespace plimsoll::pretend::driver;

namespace {

// A handle contains its device: physical memory belongs to one device and can be mapped from all.
constexpr unsigned kDeviceShift = 48;

CUmemGenericAllocationHandle join(int device, DeviceMemory::Handle handle) {
  return (static_cast<CUmemGenericAllocationHandle>(device) << kDeviceShift) | handle;
}

Device* device_in(CUmemGenericAllocationHandle handle) {
  const auto index = static_cast<int>(handle >> kDeviceShift);
  return has_device(index) ? &machine().device(index) : nullptr;
}

DeviceMemory::Handle handle_in(CUmemGenericAllocationHandle handle) { return handle & ((1ULL << kDeviceShift) - 1); }

CUresult valid(bool ok) { return ok ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE; }

CUresult refused(const char* function) {
  return static_cast<CUresult>(unpretended(function, CUDA_ERROR_NOT_SUPPORTED));
}

}  // namespace

PLIMSOLL_API CUresult cuMemGetAllocationGranularity(size_t* granularity, const CUmemAllocationProp*,
                                                    CUmemAllocationGranularity_flags) {
  *granularity = kGranularity;
  return CUDA_SUCCESS;
}

PLIMSOLL_API CUresult cuMemAddressReserve(CUdeviceptr* pointer, size_t bytes, size_t, CUdeviceptr, unsigned long long) {
  const auto address = ensure_context().memory.reserve(bytes);
  if (!address) return CUDA_ERROR_OUT_OF_MEMORY;
  *pointer = *address;
  return CUDA_SUCCESS;
}

PLIMSOLL_API CUresult cuMemAddressFree(CUdeviceptr pointer, size_t) {
  Device* const device = device_of(pointer);
  return valid(device != nullptr && device->memory.unreserve(pointer));
}

PLIMSOLL_API CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t bytes,
                                  const CUmemAllocationProp* properties, unsigned long long) {
  if (properties == nullptr || bytes == 0 || bytes % kGranularity != 0) return CUDA_ERROR_INVALID_VALUE;
  if (properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE) return refused("cuMemCreate on the host");
  if (!has_device(properties->location.id)) return CUDA_ERROR_INVALID_DEVICE;
  Device& device = machine().device(properties->location.id);
  device.ensure_context(machine().profile());
  const auto created = device.memory.create(bytes);
  if (!created) return CUDA_ERROR_OUT_OF_MEMORY;
  *handle = join(device.index, *created);
  return CUDA_SUCCESS;
}

PLIMSOLL_API CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  Device* const device = device_in(handle);
  return valid(device != nullptr && device->memory.release(handle_in(handle)));
}

PLIMSOLL_API CUresult cuMemMap(CUdeviceptr pointer, size_t bytes, size_t, CUmemGenericAllocationHandle handle,
                               unsigned long long) {
  Device* const window = device_of(pointer);
  Device* const owner = device_in(handle);
  if (window == nullptr || owner == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (window != owner) return refused("cuMemMap of another device's memory");
  return valid(window->memory.map(pointer, bytes, handle_in(handle)));
}

PLIMSOLL_API CUresult cuMemUnmap(CUdeviceptr pointer, size_t bytes) {
  Device* const device = device_of(pointer);
  return valid(device != nullptr && device->memory.unmap(pointer, bytes));
}

PLIMSOLL_API CUresult cuMemSetAccess(CUdeviceptr pointer, size_t, const CUmemAccessDesc* accesses, size_t count) {
  Device* const device = device_of(pointer);
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i) {
    if (accesses[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE) continue;
    const int other = accesses[i].location.id;
    if (!has_device(other) || (other != device->index && !machine().are_peers(other, device->index))) {
      return CUDA_ERROR_INVALID_DEVICE;
    }
  }
  return CUDA_SUCCESS;
}

PLIMSOLL_API CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* pointer) {
  Device* const device = device_of(reinterpret_cast<CUdeviceptr>(pointer));
  const auto found = device != nullptr ? device->memory.handle_at(reinterpret_cast<Address>(pointer)) : std::nullopt;
  if (!found || !device->memory.retain(*found)) return CUDA_ERROR_INVALID_VALUE;
  *handle = join(device->index, *found);
  return CUDA_SUCCESS;
}

PLIMSOLL_API CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* out,
                                                             CUmemGenericAllocationHandle handle) {
  Device* const device = device_in(handle);
  if (device == nullptr || !device->memory.bytes_of(handle_in(handle))) return CUDA_ERROR_INVALID_VALUE;
  std::memset(out, 0, sizeof *out);
  out->type = CU_MEM_ALLOCATION_TYPE_PINNED;
  out->location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  out->location.id = device->index;
  return CUDA_SUCCESS;
}
