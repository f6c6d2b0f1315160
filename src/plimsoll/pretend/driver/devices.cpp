// The driver's devices and contexts. Every device has only its primary context.

#include <cstdio>
#include <cstring>

#include "plimsoll/pretend/cuda/attributes.h"
#include "plimsoll/pretend/cuda/version.h"
#include "plimsoll/pretend/driver/driver.h"
#include "plimsoll/pretend/model/visible_devices.h"

using namespace plimsoll::pretend;
using namespace plimsoll::pretend::driver;

PLIMSOLL_API CUresult cuInit(unsigned) { return machine().device_count() > 0 ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE; }

PLIMSOLL_API CUresult cuDriverGetVersion(int* version) {
  *version = kCudaVersion;
  return CUDA_SUCCESS;
}

PLIMSOLL_API CUresult cuDeviceGetCount(int* count) {
  *count = machine().device_count();
  return CUDA_SUCCESS;
}

PLIMSOLL_API CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  if (!has_device(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

PLIMSOLL_API CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  if (!has_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  *value = device_attribute(machine().profile(), machine().device(device).card, attribute);
  return CUDA_SUCCESS;
}

PLIMSOLL_API CUresult cuDeviceGetName(char* name, int capacity, CUdevice device) {
  if (!has_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  std::snprintf(name, static_cast<std::size_t>(capacity), "%s", machine().profile().device_name.c_str());
  return CUDA_SUCCESS;
}

#undef cuDeviceGetUuid
PLIMSOLL_API CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
  if (!has_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  fill_uuid(uuid->bytes, machine().device(device).card);
  return CUDA_SUCCESS;
}

#undef cuDeviceGetUuid_v2
PLIMSOLL_ALIAS(cuDeviceGetUuid_v2, cuDeviceGetUuid);

PLIMSOLL_API CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
  if (!has_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  *bytes = machine().profile().memory;
  return CUDA_SUCCESS;
}

PLIMSOLL_API CUresult cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
  if (!has_device(device) || !has_device(peer)) return CUDA_ERROR_INVALID_DEVICE;
  *can = machine().are_peers(device, peer) ? 1 : 0;
  return CUDA_SUCCESS;
}

PLIMSOLL_API CUresult cuDeviceGetPCIBusId(char* text, int capacity, CUdevice device) {
  if (!has_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  std::snprintf(text, static_cast<std::size_t>(capacity), "0000:%02x:00.0", machine().device(device).card + 1);
  return CUDA_SUCCESS;
}

PLIMSOLL_API CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active) {
  if (!has_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  if (flags != nullptr) *flags = machine().device(device).flags.load(std::memory_order_relaxed);
  if (active != nullptr) *active = machine().device(device).has_context() ? 1 : 0;
  return CUDA_SUCCESS;
}

PLIMSOLL_API CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  if (!has_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  if (!machine().device(device).ensure_context(machine().profile())) return CUDA_ERROR_OUT_OF_MEMORY;
  *context = context_of(device);
  return CUDA_SUCCESS;
}

PLIMSOLL_API CUresult cuDevicePrimaryCtxRelease_v2(CUdevice) { return CUDA_SUCCESS; }

PLIMSOLL_API CUresult cuCtxGetCurrent(CUcontext* context) {
  const int device = current_device();
  *context = machine().device(device).has_context() ? context_of(device) : nullptr;
  return CUDA_SUCCESS;
}

PLIMSOLL_API CUresult cuCtxSetCurrent(CUcontext context) {
  if (context != nullptr) set_current_device(device_of(context)->index);
  return CUDA_SUCCESS;
}

namespace {

/// The devices that cuCtxPushCurrent stored for cuCtxPopCurrent.
thread_local std::vector<int> t_pushed;

}  // namespace

PLIMSOLL_API CUresult cuCtxPushCurrent_v2(CUcontext context) {
  t_pushed.push_back(current_device());
  return cuCtxSetCurrent(context);
}

PLIMSOLL_API CUresult cuCtxPopCurrent_v2(CUcontext* context) {
  if (t_pushed.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  if (context != nullptr) *context = context_of(current_device());
  set_current_device(t_pushed.back());
  t_pushed.pop_back();
  return CUDA_SUCCESS;
}

PLIMSOLL_API CUresult cuCtxGetDevice(CUdevice* device) {
  *device = current_device();
  return CUDA_SUCCESS;
}

PLIMSOLL_API CUresult cuCtxSynchronize() {
  if (machine().forbid_in_captures_of(current_device())) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  machine().synchronize(ensure_context().index, "cuCtxSynchronize");
  return CUDA_SUCCESS;
}

PLIMSOLL_API CUresult cuCtxGetLimit(size_t* value, CUlimit limit) {
  *value = ensure_context().limit(limit);
  return CUDA_SUCCESS;
}

PLIMSOLL_API CUresult cuCtxSetLimit(CUlimit limit, size_t value) {
  ensure_context().set_limit(limit, value);
  return CUDA_SUCCESS;
}

PLIMSOLL_API CUresult cuCtxGetApiVersion(CUcontext, unsigned* version) {
  *version = kCudaVersion;
  return CUDA_SUCCESS;
}
